// Sends one mail by SMTP.
import { once } from "node:events";
import { connect } from "node:net";
import { createInterface } from "node:readline";

/** Sends `data`, with line feeds, from `sender` to `recipient`; fails unless the server accepts it. */
export async function send(server, sender, recipient, data) {
  const [host, port] = server.split(":");
  const socket = connect(Number(port), host);
  await once(socket, "connect");
  const lines = createInterface({ input: socket })[Symbol.asyncIterator]();
  const expect = async (code) => {
    for (;;) {
      const { value: line, done } = await lines.next();
      if (done) throw new Error("the server closed the connection");
      // A hyphen says that more lines of the reply follow.
      if (line[3] === "-") continue;
      if (!line.startsWith(code)) throw new Error(`the server replied: ${line}`);
      return;
    }
  };
  const body = data.replace(/\r?\n/g, "\r\n").replace(/^\./gm, "..");
  await expect("220");
  for (const [command, code] of [
    ["EHLO site.example", "250"],
    [`MAIL FROM:<${sender}>`, "250"],
    [`RCPT TO:<${recipient}>`, "250"],
    ["DATA", "354"],
    [`${body}\r\n.`, "250"],
    ["QUIT", "221"],
  ]) {
    socket.write(`${command}\r\n`);
    await expect(code);
  }
  socket.destroy();
}
