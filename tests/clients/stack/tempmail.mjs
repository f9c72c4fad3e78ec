// `tempmail up` on free ports, which a test may restart.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { join } from "node:path";

/** For how long the start may take, in milliseconds. */
const START_TIME = 120_000;

export class Tempmail {
  #program;
  #directory;
  #environment;
  #process;
  /** Addresses of the listeners, the same after a restart. */
  #addresses = { http: "127.0.0.1:0", smtp: "127.0.0.1:0", admin: "127.0.0.1:0" };

  constructor(program, directory) {
    this.#program = program;
    this.#directory = directory;
  }

  get url() {
    return `http://${this.#addresses.http}`;
  }

  /** Host and port of inbound SMTP. */
  get smtp() {
    return this.#addresses.smtp;
  }

  /** The live token of its tenant. */
  async token() {
    return JSON.parse(await readFile(join(this.#directory, "credentials.json"), "utf8")).live_token;
  }

  /** Starts it, and returns when it is ready. */
  async start(environment = this.#environment) {
    this.#environment = environment;
    const listeners = Object.entries(this.#addresses).flatMap(([name, address]) => [`--${name}`, address]);
    const args = ["up", "--data-dir", this.#directory, ...listeners];
    const env = { ...process.env, ...environment };
    delete env.TEMPMAIL;
    const child = spawn(this.#program, args, { stdio: ["ignore", "pipe", "inherit"], env });
    this.#process = child;
    child.stdout.setEncoding("utf8");
    const timer = setTimeout(() => child.kill("SIGKILL"), START_TIME);
    let output = "";
    for await (const text of child.stdout.iterator({ destroyOnReturn: false })) {
      output += text;
      if (output.includes("\nready\n")) break;
    }
    clearTimeout(timer);
    child.stdout.resume();
    const listens = (pattern) => {
      const found = pattern.exec(output);
      if (found === null) throw new Error(`tempmail did not start: ${output}`);
      return found[1];
    };
    this.#addresses = {
      http: listens(/^ +HTTP +http:\/\/(\S+)$/m),
      smtp: listens(/^ +SMTP +(\S+)$/m),
      admin: listens(/^ +probes +http:\/\/(\S+)\/readyz$/m),
    };
  }

  /** Ends it by a signal, and returns when it has ended. */
  async stop(signal) {
    const child = this.#process;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const exit = once(child, "exit");
    child.kill(signal);
    await exit;
  }
}
