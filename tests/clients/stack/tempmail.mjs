// `tempmail up` on free ports, which a test may restart.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { freeAddresses } from "./ports.mjs";

/** For how long the start may take, in milliseconds. */
const START_TIME = 120_000;

export class Tempmail {
  #program;
  #directory;
  #environment;
  #process;
  /** Addresses of the listeners, the same after a restart. */
  #addresses;

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
    if (this.#addresses === undefined) {
      const [http, smtp, admin] = await freeAddresses(3);
      this.#addresses = { http, smtp, admin };
    }
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
    if (!output.includes("\nready\n")) throw new Error(`tempmail did not start: ${output}`);
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
