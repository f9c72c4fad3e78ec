import assert from "node:assert/strict";
import client from "mailhog";
import { check, finish, send } from "./check.mjs";

const { BASE_URL, TOKEN, OWNED, DOMAIN } = process.env;
const { hostname, port } = new URL(BASE_URL);
const mailhog = client({ host: hostname, port, auth: `any:${TOKEN}` });

await check("messages: none", async () => assert.equal((await mailhog.messages()).count, 0));
await send(OWNED, "=?utf-8?q?F=C3=BCrst?=");
await send(OWNED, "Second");
await check("messages", async () => {
  const list = await mailhog.messages(1, 1);
  assert.equal(list.total, 2);
  const [message] = list.items;
  assert.equal(message.subject, "Fürst");
  assert.equal(message.from, "Shop <shop@sender.example>");
  assert.equal(message.to, OWNED);
  assert.match(message.text, /482913/);
  assert.match(message.html, /<b>482913<\/b>/);
  assert.ok(message.deliveryDate.getTime() > Date.now() - 3600000);
  const [attachment] = message.attachments;
  assert.equal(attachment.name, "bill.pdf");
  assert.equal(attachment.type, "application/pdf");
  assert.equal(Buffer.from(attachment.Body, attachment.encoding).toString(), "hello");
});
await check("search", async () => assert.equal((await mailhog.search("482913")).count, 2));
await check("latestFrom", async () => assert.equal((await mailhog.latestFrom("shop@sender.example")).subject, "Second"));
await check("latestTo", async () => assert.equal((await mailhog.latestTo(OWNED)).subject, "Second"));
await check("latestContaining", async () => assert.equal((await mailhog.latestContaining("482913")).subject, "Second"));
await check("latestTo: a shared inbox", async () => {
  await send(`shared@${DOMAIN}`, "Shared");
  assert.equal((await mailhog.latestTo(`shared@${DOMAIN}`)).subject, "Shared");
});
await check("latestTo: none", async () => assert.ok(!(await mailhog.latestTo("nobody"))));
await check("deleteMessage", async () => {
  const { ID } = await mailhog.latestTo(OWNED);
  assert.equal((await mailhog.deleteMessage(ID)).statusCode, 200);
  assert.equal((await mailhog.messages()).total, 1);
});
await check("deleteAll", async () => {
  assert.equal((await mailhog.deleteAll()).statusCode, 200);
  assert.equal((await mailhog.messages()).total, 0);
});
await check("releaseMessage: is refused", () => assert.rejects(mailhog.releaseMessage("x", { host: "a", port: "1", email: "a@a" })));
await check("messages: a wrong password", () => assert.rejects(client({ host: hostname, port, auth: "any:x" }).messages()));
finish();
