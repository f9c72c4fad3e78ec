// Runs a command beside a tempmail, a site to sign up at, and a proxy with faults:
//   node stack.mjs COMMAND [ARGUMENT...]
// The command finds them in its environment; all ends with it, and the exit status is its own.
import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startFaults } from "./faults.mjs";
import { startSite } from "./site.mjs";
import { Tempmail } from "./tempmail.mjs";

const program = process.env.TEMPMAIL ?? new URL("../../../target/debug/tempmail", import.meta.url).pathname;
const directory = await mkdtemp(join(tmpdir(), "tempmail-clients-"));
const tempmail = new Tempmail(program, directory);
const site = await startSite(tempmail);
try {
  await tempmail.start({ TEMPMAIL_HTTP__CORS_ORIGINS: JSON.stringify([site.url]) });
  const faults = await startFaults(tempmail.url);
  process.exitCode = await run(process.argv.slice(2), {
    TEMPMAIL_CLIENT_URL: tempmail.url,
    TEMPMAIL_CLIENT_TOKEN: await tempmail.token(),
    SITE_URL: site.url,
    FAULTS_URL: faults.url,
  });
  faults.close();
} finally {
  site.close();
  await tempmail.stop("SIGTERM");
  await rm(directory, { recursive: true, force: true });
}

/** Runs the command; its exit status. */
function run([command, ...args], environment) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: "inherit", env: { ...process.env, ...environment } });
    for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => child.kill(signal));
    child.once("error", reject);
    child.once("exit", (status) => resolve(status ?? 1));
  });
}
