import assert from "node:assert/strict";
import Mailjs from "@cemalgnlts/mailjs";
import { check, finish, send } from "./check.mjs";

const mailjs = new Mailjs();
mailjs.baseUrl = process.env.BASE_URL;

/** The data of an answer that succeeded. */
async function data(answer) {
  const { status, message, data } = await answer;
  assert.ok(status, message);
  return data;
}

const [domain] = await check("getDomains", () => data(mailjs.getDomains()));
await check("getDomain", async () => assert.equal((await data(mailjs.getDomain(domain.id))).domain, domain.domain));
const address = `kim@${domain.domain}`;
await check("register", async () => assert.equal((await data(mailjs.register(address, "correct horse"))).address, address));
await check("register: an address that is taken", async () => {
  const { statusCode, message } = await mailjs.register(address, "correct horse");
  assert.equal(statusCode, 422);
  assert.ok(message);
});
await check("login", () => data(mailjs.login(address, "correct horse")));
await check("login: a wrong password", async () => {
  const { statusCode, message } = await new Mailjs().login.call(Object.assign(new Mailjs(), { baseUrl: mailjs.baseUrl }), address, "wrong");
  assert.deepEqual([statusCode, message], [401, "Invalid credentials."]);
});
await check("loginWithToken", () => data(mailjs.loginWithToken(mailjs.token)));
await check("me", async () => assert.equal((await data(mailjs.me())).address, address));
await check("getAccount", async () => assert.equal((await data(mailjs.getAccount(mailjs.id))).id, mailjs.id));
await check("getMessages: none", async () => assert.deepEqual(await data(mailjs.getMessages()), []));
await send(address, "First");
const [summary] = await check("getMessages", () => data(mailjs.getMessages()));
await check("getMessages: the summary", async () => {
  assert.equal(summary.subject, "First");
  assert.equal(summary.from.address, "shop@sender.example");
  assert.ok(summary.hasAttachments && !summary.seen);
});
await check("getMessage", async () => {
  const message = await data(mailjs.getMessage(summary.id));
  assert.match(message.text, /482913/);
  assert.match(message.html[0], /<b>482913<\/b>/);
  assert.equal(message.attachments[0].filename, "bill.pdf");
});
await check("setMessageSeen", async () => {
  assert.equal((await data(mailjs.setMessageSeen(summary.id))).seen, true);
  assert.equal((await data(mailjs.getMessages()))[0].seen, true);
});
await check("getSource", async () => assert.match((await data(mailjs.getSource(summary.id))).data, /^Subject: First/m));
await check("deleteMessage", async () => {
  await data(mailjs.deleteMessage(summary.id));
  assert.equal((await mailjs.getMessage(summary.id)).statusCode, 404);
});
await check("deleteMe", async () => {
  const account = mailjs.id;
  await data(mailjs.deleteMe());
  assert.equal((await mailjs.getAccount(account)).statusCode, 401);
});
await check("createOneAccount", () => data(mailjs.createOneAccount()));
await check("getMessages: of the new account", async () => assert.deepEqual(await data(mailjs.getMessages()), []));
finish();
