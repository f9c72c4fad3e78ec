// The commands of cypress-mailpit, with a `cy` that does of Cypress what they use.
import assert from "node:assert/strict";
import { MailpitCommands } from "./MailpitCommands.mjs";
import { check, finish, send } from "./check.mjs";

const { BASE_URL, TOKEN, OWNED } = process.env;
globalThis.Cypress = {
  expose: (name) => ({ MAILPIT_URL: BASE_URL })[name],
  config: () => 20000,
};
globalThis.cy = {
  env: async () => ({ MAILPIT_USERNAME: "any", MAILPIT_PASSWORD: TOKEN }),
  wrap: async (value) => value,
  wait: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
  request: async ({ method, url, qs, body, auth }) => {
    const target = new URL(url);
    for (const [name, value] of Object.entries(qs ?? {})) target.searchParams.set(name, value);
    const answer = await fetch(target, {
      method,
      headers: {
        authorization: `Basic ${btoa(`${auth.user}:${auth.pass}`)}`,
        ...(body && { "content-type": "application/json" }),
      },
      body: body && JSON.stringify(body),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${answer.status}: ${text}`);
    const isJson = answer.headers.get("content-type")?.includes("json");
    return { status: answer.status, body: isJson ? JSON.parse(text) : text };
  },
};
const mailpit = new MailpitCommands();

await check("mailpitDeleteAllEmails", () => mailpit.mailpitDeleteAllEmails());
await check("mailpitNotHasEmailsBySubject", () => mailpit.mailpitNotHasEmailsBySubject("First"));
await check("mailpitNotHasEmailsByTo", () => mailpit.mailpitNotHasEmailsByTo(OWNED));
setTimeout(() => send(OWNED, "First"), 300);
await check("mailpitHasEmailsBySubject", () => mailpit.mailpitHasEmailsBySubject("First"));
await check("mailpitHasEmailsByTo", () => mailpit.mailpitHasEmailsByTo(OWNED));
await check("mailpitHasEmailsBySearch", () => mailpit.mailpitHasEmailsBySearch("from:shop@sender.example"));
await check("mailpitNotHasEmailsBySearch", () => mailpit.mailpitNotHasEmailsBySearch("from:nobody"));
await check("mailpitGetAllMails", async () => assert.equal((await mailpit.mailpitGetAllMails()).total, 1));
await check("mailpitSearchEmails", async () => assert.equal((await mailpit.mailpitSearchEmails("482913")).messages_count, 1));
await check("mailpitGetEmailsBySubject", async () => assert.equal((await mailpit.mailpitGetEmailsBySubject("First")).messages.length, 1));
await check("mailpitGetEmailsByTo", async () => assert.equal((await mailpit.mailpitGetEmailsByTo(OWNED)).messages.length, 1));
const message = await check("mailpitGetMail", () => mailpit.mailpitGetMail());
await check("mailpitGetSubject", async () => assert.equal(await mailpit.mailpitGetSubject(message), "First"));
await check("mailpitGetFromAddress", async () => assert.equal(await mailpit.mailpitGetFromAddress(message), "shop@sender.example"));
await check("mailpitGetRecipientAddress", async () => assert.deepEqual(await mailpit.mailpitGetRecipientAddress(message), [OWNED]));
await check("mailpitGetAttachments", async () => assert.deepEqual(await mailpit.mailpitGetAttachments(message), ["bill.pdf"]));
await check("mailpitGetMailHTMlBody", async () => assert.match(await mailpit.mailpitGetMailHTMlBody(message), /<b>482913<\/b>/));
await check("mailpitGetMailTextBody", async () => assert.match(await mailpit.mailpitGetMailTextBody(message), /482913/));
await check("mailpitSetStatusAsUnRead", async () => {
  await mailpit.mailpitSetStatusAsUnRead(message);
  assert.equal((await mailpit.mailpitGetAllMails()).unread, 1);
});
await check("mailpitSetStatusAsRead", async () => {
  await mailpit.mailpitSetStatusAsRead([message]);
  assert.equal((await mailpit.mailpitGetAllMails()).unread, 0);
});
await check("mailpitSetAllEmailStatusAsUnRead", () => mailpit.mailpitSetAllEmailStatusAsUnRead());
await check("mailpitSetAllEmailStatusAsRead", () => mailpit.mailpitSetAllEmailStatusAsRead());
await check("mailpitDeleteEmailsBySearch", async () => {
  await mailpit.mailpitDeleteEmailsBySearch("subject:First");
  assert.equal((await mailpit.mailpitGetAllMails()).total, 0);
});
await check("mailpitSendMail: is refused", () => assert.rejects(mailpit.mailpitSendMail({}), /404/));
await check("mailpitGetMailSpamAssassinSummary: is refused", () =>
  assert.rejects(mailpit.mailpitGetMailSpamAssassinSummary(message), /404/));
finish();
