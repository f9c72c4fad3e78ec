import assert from "node:assert/strict";
import { MailpitClient } from "mailpit-api";
import { check, finish, send } from "./check.mjs";

const { BASE_URL, TOKEN, OWNED, DOMAIN } = process.env;
const mailpit = new MailpitClient(BASE_URL, { auth: { username: "any", password: TOKEN } });

await check("getInfo", async () => assert.equal((await mailpit.getInfo()).Messages, 0));
await check("getConfiguration", async () => assert.equal((await mailpit.getConfiguration()).MessageRelay.Enabled, false));
await check("listMessages: none", async () => assert.deepEqual((await mailpit.listMessages()).messages, []));
setTimeout(() => send(OWNED, "First"), 300);
const first = await check("waitForMessage", () => mailpit.waitForMessage({ query: "subject:First" }, { timeout: 20000 }));
await send(OWNED, "Second");
await check("waitForMessages", () => mailpit.waitForMessages({ query: `to:${OWNED}`, count: 2 }, { timeout: 20000 }));
await check("listMessages", async () => {
  const list = await mailpit.listMessages(0, 1);
  assert.equal(list.total, 2);
  assert.equal(list.messages[0].Subject, "Second");
  assert.equal(list.messages[0].Attachments, 1);
});
await check("searchMessages", async () => {
  const found = await mailpit.searchMessages({ query: "has:attachment -subject:Second 482913", tz: "Europe/Vienna" });
  assert.equal(found.messages_count, 1);
  assert.equal(found.messages[0].ID, first.ID);
});
await check("searchMessages: a shared inbox", async () => {
  await send(`shared@${DOMAIN}`, "Shared");
  assert.equal((await mailpit.searchMessages({ query: `to:shared@${DOMAIN}` })).messages[0].Subject, "Shared");
});
await check("getMessageSummary", async () => {
  const message = await mailpit.getMessageSummary(first.ID);
  assert.equal(message.From.Address, "shop@sender.example");
  assert.match(message.Text, /482913/);
  assert.match(message.HTML, /<b>482913<\/b>/);
});
await check("getMessageSummary: the newest", async () => assert.equal((await mailpit.getMessageSummary()).Subject, "Second"));
await check("getMessageHeaders", async () => assert.deepEqual((await mailpit.getMessageHeaders()).Subject, ["Second"]));
await check("getMessageAttachment", async () => {
  const blob = await mailpit.getMessageAttachment(first.ID, first.Attachments[0].PartID);
  assert.equal(blob.type, "application/pdf");
  assert.equal(await blob.text(), "hello");
});
await check("getAttachmentThumbnail: of what is no image", () =>
  assert.rejects(mailpit.getAttachmentThumbnail(first.ID, first.Attachments[0].PartID), /404/));
await check("getMessageSource", async () => assert.match(await mailpit.getMessageSource(first.ID), /^Subject: First/m));
await check("renderMessageHTML", async () => assert.match(await mailpit.renderMessageHTML(first.ID), /<b>482913<\/b>/));
await check("renderMessageHTML: embedded", async () => assert.match(await mailpit.renderMessageHTML(first.ID, 1), /<b>482913<\/b>/));
await check("renderMessageText", async () => assert.match(await mailpit.renderMessageText(), /482913/));
await check("setReadStatus: by id", async () => {
  assert.equal(await mailpit.setReadStatus({ IDs: [first.ID], Read: false }), "ok");
  assert.equal((await mailpit.searchMessages({ query: "is:unread subject:First" })).messages_count, 1);
});
await check("setReadStatus: by search", () => mailpit.setReadStatus({ Search: "after:2020-01-01", Read: true }, { tz: "UTC" }));
await check("setReadStatus: of all", async () => {
  await mailpit.setReadStatus({ Read: true });
  assert.equal((await mailpit.listMessages()).unread, 0);
});
await check("getTags", async () => assert.deepEqual(await mailpit.getTags(), []));
await check("deleteMessagesBySearch", async () => {
  assert.equal(await mailpit.deleteMessagesBySearch({ query: "subject:Second" }), "ok");
  assert.equal((await mailpit.listMessages()).total, 1);
});
await check("deleteMessages: by id", async () => {
  await mailpit.deleteMessages({ IDs: [first.ID] });
  await mailpit.waitForMessages({ count: 0 }, { timeout: 20000 });
});
await check("deleteMessages", async () => assert.equal(await mailpit.deleteMessages(), "ok"));
for (const [name, call] of Object.entries({
  sendMessage: () => mailpit.sendMessage({ From: { Email: "a@a.example" }, To: [{ Email: OWNED }] }),
  releaseMessage: () => mailpit.releaseMessage("latest", ["a@a.example"]),
  htmlCheck: () => mailpit.htmlCheck(),
  linkCheck: () => mailpit.linkCheck(),
  spamAssassinCheck: () => mailpit.spamAssassinCheck(),
  setTags: () => mailpit.setTags({ IDs: [], Tags: ["a"] }),
  renameTag: () => mailpit.renameTag("a", "b"),
  deleteTag: () => mailpit.deleteTag("a"),
  getChaosTriggers: () => mailpit.getChaosTriggers(),
  setChaosTriggers: () => mailpit.setChaosTriggers(),
})) {
  await check(`${name}: is refused`, () => assert.rejects(call(), /Mailpit API Error: 40[45]/));
}
await check("getInfo: a wrong password", () =>
  assert.rejects(new MailpitClient(BASE_URL, { auth: { username: "any", password: "x" } }).getInfo(), /401/));
finish();
