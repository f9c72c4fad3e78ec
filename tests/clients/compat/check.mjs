// Checks calls of a client, and sends mail.
import { send as transmit } from "./smtp.mjs";

let failed = 0;

/** Runs a call: `name` begins with it, as `getInfo: a wrong password`. What it returns is returned, and must not be false. */
export async function check(name, call) {
  try {
    const result = await call();
    if (result === false) throw new Error("not as expected");
    console.log(`ok: ${name}`);
    return result;
  } catch (error) {
    failed += 1;
    console.log(`FAILED: ${name}\n${error?.stack ?? error}`);
    return undefined;
  }
}

export function finish() {
  process.exit(failed ? 1 : 0);
}

/** Sends a mail with text, HTML and a file. */
export function send(to, subject = "Hello") {
  const mail = [
    "From: Shop <shop@sender.example>", `To: ${to}`, `Subject: ${subject}`, "Message-ID: <1@sender.example>",
    "MIME-Version: 1.0", "Content-Type: multipart/mixed; boundary=m", "", "--m",
    "Content-Type: multipart/alternative; boundary=a", "", "--a", "Content-Type: text/plain; charset=utf-8", "",
    "Your verification code is 482913.", "--a", "Content-Type: text/html; charset=utf-8", "",
    '<p>Your verification code is <b>482913</b></p><a href="https://sender.example/v">Verify</a>', "--a--", "--m",
    "Content-Type: application/pdf", 'Content-Disposition: attachment; filename="bill.pdf"',
    "Content-Transfer-Encoding: base64", "", "aGVsbG8=", "--m--",
  ].join("\n");
  return transmit(process.env.TEST_SMTP, "shop@sender.example", to, mail);
}
