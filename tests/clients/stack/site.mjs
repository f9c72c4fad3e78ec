// A site to sign up at: a page, the same as an API, and what a test does to tempmail.
//   POST /api/sign-up {email}          sends the mail with a code and a link; earlier ones are not valid any more
//   POST /api/confirm {email, code}    200, or 400 where the code is another one
//   GET  /confirm?token=               what the link opens
//   POST /send?to=                     sends the body, a whole mail
//   POST /restart?signal=              ends tempmail by the signal, and starts it again
//   GET  /client/…                     the files of the client that the working directory has installed, for browsers
import { randomBytes, randomInt } from "node:crypto";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { join, normalize } from "node:path";
import { send } from "./smtp.mjs";

const CLIENT = "node_modules/@tempmail/client/dist";

/** Starts the site on a free port. */
export async function startSite(tempmail) {
  /** What each address was sent last: `{code, token}`. */
  const sent = new Map();
  const server = createServer((request, response) => {
    answer(request, tempmail, sent, `http://${request.headers.host}`).then(
      ([status, type, body]) => response.writeHead(status, { "content-type": type }).end(body),
      (error) => response.writeHead(500, { "content-type": "text/plain" }).end(`${error}`),
    );
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    close: () => (server.close(), server.closeAllConnections()),
  };
}

async function answer(request, tempmail, sent, origin) {
  const url = new URL(request.url, origin);
  const parameter = (name) => url.searchParams.get(name) ?? "";
  const body = await text(request);
  switch (`${request.method} ${url.pathname}`) {
    case "GET /":
      return [200, "text/html", PAGE];
    case "POST /api/sign-up": {
      const { email } = JSON.parse(body);
      const code = String(randomInt(1_000_000)).padStart(6, "0");
      const token = randomBytes(16).toString("hex");
      sent.set(email, { code, token });
      await send(tempmail.smtp, "bounce@shop.example", email, signUpMail(email, code, `${origin}/confirm?token=${token}`));
      return [202, "application/json", "{}"];
    }
    case "POST /api/confirm": {
      const { email, code } = JSON.parse(body);
      const confirmed = sent.get(email)?.code === code;
      return [confirmed ? 200 : 400, "application/json", JSON.stringify({ confirmed })];
    }
    case "GET /confirm": {
      const confirmed = [...sent.values()].some(({ token }) => token === parameter("token"));
      return [confirmed ? 200 : 400, "text/html", `<p role="status">${confirmed ? "Welcome!" : "Wrong link"}</p>`];
    }
    case "POST /send":
      await send(tempmail.smtp, "sender@example.org", parameter("to"), body);
      return [202, "application/json", "{}"];
    case "POST /restart":
      await tempmail.stop(parameter("signal"));
      await tempmail.start();
      return [200, "application/json", "{}"];
    default: {
      const [, path] = /^\/client(\/[\w.-]+\.js)$/.exec(normalize(url.pathname)) ?? [];
      if (path === undefined) return [404, "text/plain", "There is no such page."];
      return [200, "text/javascript", await readFile(join(CLIENT, path))];
    }
  }
}

async function text(request) {
  request.setEncoding("utf8");
  let body = "";
  for await (const chunk of request) body += chunk;
  return body;
}

function signUpMail(to, code, link) {
  return `From: Example Shop <no-reply@shop.example>
To: <${to}>
Subject: Confirm your address
MIME-Version: 1.0
Content-Type: multipart/alternative; boundary="part"

--part
Content-Type: text/plain; charset=utf-8

Welcome!

Your confirmation code is ${code}. It is valid for 10 minutes.

Or confirm your address here: ${link}

--part
Content-Type: text/html; charset=utf-8

<h1>Welcome!</h1>
<p>Your confirmation code is <b>${code}</b>. It is valid for 10 minutes.</p>
<p><a href="${link}" style="background: #123456">Confirm your address</a></p>

--part--
`;
}

const PAGE = `<!doctype html>
<title>Shop</title>
<form id="sign-up"><label>Email <input name="email" type="email" required></label> <button>Sign up</button></form>
<form id="confirm" hidden><label>Code <input name="code" required></label> <button>Confirm</button></form>
<p role="status"></p>
<script>
  const [signUp, confirm, status] = document.querySelectorAll("form, [role=status]");
  const post = (path, body) =>
    fetch(path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
  signUp.onsubmit = async (event) => {
    event.preventDefault();
    const answer = await post("/api/sign-up", { email: signUp.email.value });
    status.textContent = answer.ok ? "We sent you a code" : "We could not send you a code";
    confirm.hidden = false;
  };
  confirm.onsubmit = async (event) => {
    event.preventDefault();
    const answer = await post("/api/confirm", { email: signUp.email.value, code: confirm.code.value });
    status.textContent = answer.ok ? "Welcome!" : "Wrong code";
  };
</script>
`;
