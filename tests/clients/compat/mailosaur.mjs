import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer, request } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { connect } from "node:net";
import { check, finish, send } from "./check.mjs";

const { BASE_URL, TOKEN, DOMAIN } = process.env;
const [serverId, host] = [DOMAIN.split(".")[0], DOMAIN.slice(DOMAIN.indexOf(".") + 1)];

// https://mailosaur.localhost:443/ is the surface, for who goes through the proxy.
const tls = createTlsServer({ key: readFileSync(process.env.TLS_KEY), cert: readFileSync(process.env.TLS_CERT) }, (from, to) => {
  const { method, url, headers } = from;
  from.pipe(request(BASE_URL + url, { method, headers }, (answer) => {
    to.writeHead(answer.statusCode, answer.headers);
    answer.pipe(to);
  }));
}).listen(0, "127.0.0.1");
const proxy = createServer().on("connect", (_, socket) => {
  const upstream = connect(tls.address().port, "127.0.0.1", () => {
    socket.write("HTTP/1.1 200 OK\r\n\r\n");
    socket.pipe(upstream).pipe(socket);
  });
  for (const end of [socket, upstream]) end.on("error", () => {});
}).listen(0, "127.0.0.1");
await new Promise((resolve) => proxy.once("listening", resolve));
process.env.HTTPS_PROXY = `http://127.0.0.1:${proxy.address().port}`;
process.env.MAILOSAUR_SMTP_HOST = host;

const { default: MailosaurClient } = await import("mailosaur");
const mailosaur = new MailosaurClient(TOKEN, "https://mailosaur.localhost/");

await check("servers.list", async () => {
  const { items } = await mailosaur.servers.list();
  assert.equal(items.find(({ name }) => name === DOMAIN).id, serverId);
});
await check("servers.get", async () => assert.equal((await mailosaur.servers.get(serverId)).name, DOMAIN));
const address = await check("servers.generateEmailAddress", () => mailosaur.servers.generateEmailAddress(serverId));
setTimeout(() => send(address, "First"), 300);
const message = await check("messages.get", () => mailosaur.messages.get(serverId, { sentTo: address }, { timeout: 20000 }));
await check("messages.get: the message", async () => {
  assert.equal(message.subject, "First");
  assert.equal(message.from[0].email, "shop@sender.example");
  assert.equal(message.to[0].email, address);
  assert.equal(message.html.codes[0].value, "482913");
  assert.equal(message.text.codes[0].value, "482913");
  assert.equal(message.html.links[0].href, "https://sender.example/v");
  assert.equal(message.html.links[0].text, "Verify");
  assert.ok(message.received.getTime() > Date.now() - 3600000);
  assert.ok(message.metadata.headers.some(({ field }) => field === "Subject"));
});
await check("messages.getById", async () => assert.equal((await mailosaur.messages.getById(message.id)).server, serverId));
await check("messages.search", async () => {
  const { items } = await mailosaur.messages.search(serverId, { sentTo: address, subject: "first", match: "ALL" });
  assert.equal(items.length, 1);
});
await check("messages.search: times out", () =>
  assert.rejects(mailosaur.messages.search(serverId, { subject: "nothing" }, { timeout: 400 }), { errorType: "search_timeout" }));
await check("messages.search: times out without an error", async () => {
  const options = { timeout: 400, errorOnTimeout: false, receivedAfter: new Date() };
  assert.deepEqual((await mailosaur.messages.search(serverId, { subject: "nothing" }, options)).items, []);
});
await check("messages.search: no criteria", () =>
  assert.rejects(mailosaur.messages.search(serverId, {}), { errorType: "invalid_request", httpStatusCode: 400 }));
await check("messages.list", async () => {
  await send(process.env.OWNED, "Owned");
  const { items } = await mailosaur.messages.list(serverId, { itemsPerPage: 10 });
  assert.deepEqual(items.map(({ subject }) => subject), ["Owned"]);
});
await check("files.getEmail", async () => assert.match((await mailosaur.files.getEmail(message.id)).toString(), /^Subject: First/m));
await check("files.getAttachment", async () =>
  assert.equal((await mailosaur.files.getAttachment(message.attachments[0].id)).toString(), "hello"));
await check("messages.del", async () => {
  await mailosaur.messages.del(message.id);
  await assert.rejects(mailosaur.messages.getById(message.id), { httpStatusCode: 404 });
});
await check("messages.deleteAll", async () => {
  await mailosaur.messages.deleteAll(serverId);
  assert.deepEqual((await mailosaur.messages.list(serverId)).items, []);
});
for (const [name, call] of Object.entries({
  "servers.create": () => mailosaur.servers.create({ name: "x" }),
  "servers.update": () => mailosaur.servers.update(serverId, { id: serverId, name: "x" }),
  "servers.del": () => mailosaur.servers.del(serverId),
  "servers.getPassword": () => mailosaur.servers.getPassword(serverId),
  "messages.create": () => mailosaur.messages.create(serverId, { to: "a@a.example" }),
  "messages.reply": () => mailosaur.messages.reply("x", { text: "x" }),
  "messages.forward": () => mailosaur.messages.forward("x", { to: "a@a.example" }),
  "analysis.spam": () => mailosaur.analysis.spam("x"),
  "usage.limits": () => mailosaur.usage.limits(),
  "devices.list": () => mailosaur.devices.list(),
})) {
  await check(`${name}: is refused`, () => assert.rejects(call(), ({ httpStatusCode }) => [404, 405].includes(httpStatusCode)));
}
await check("servers.list: a wrong API key", () =>
  assert.rejects(new MailosaurClient("x", "https://mailosaur.localhost/").servers.list(), { errorType: "authentication_error" }));
finish();
