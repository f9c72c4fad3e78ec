/** The site of `tests/clients/stack`, as the tests use it. */

const site = process.env.SITE_URL!;

/** The URL of a base with a fault in `tests/clients/stack/faults.mjs`. */
export const faulty = (fault: string) => `${process.env.FAULTS_URL}/${fault}`;

/** Signs up, so that a mail with a code and a link is sent. */
export async function signUp(email: string): Promise<void> {
  await post("/api/sign-up", JSON.stringify({ email }));
}

/** Whether the code is that of the last mail to the address. */
export async function confirms(email: string, code: string): Promise<boolean> {
  const answer = await fetch(`${site}/api/confirm`, { method: "POST", body: JSON.stringify({ email, code }) });
  return answer.status === 200;
}

/** Sends a mail. */
export async function send(to: string, subject: string, text = "Hello.", headers = ""): Promise<void> {
  const data = `From: Ada <ada@example.org>\nTo: <${to}>\nSubject: ${subject}\n${headers}\n${text}\n`;
  await post(`/send?to=${encodeURIComponent(to)}`, data);
}

/** Restarts the server. */
export async function restart(signal: "SIGTERM" | "SIGKILL"): Promise<void> {
  await post(`/restart?signal=${signal}`);
}

async function post(path: string, body = ""): Promise<void> {
  const answer = await fetch(site + path, { method: "POST", body });
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
}
