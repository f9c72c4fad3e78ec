import { Tempmail, TempmailError, WaitTimeoutError } from "@tempmail/client";
import { afterAll, expect, test, vi } from "vitest";
import { send, signUp, confirms } from "../site.js";

const tempmail = new Tempmail();
afterAll(() => tempmail.close());

test("hands over the code and the link of a mail", async () => {
  const inbox = await tempmail.inbox({ name: "sign-up" });
  expect(inbox.address).toMatch(/^sign-up-[a-z2-9]{16}@inbox\.localhost$/);
  await signUp(inbox.address);
  const mail = await inbox.wait({ subject: "confirm YOUR", from: "shop.example", has: ["code", "link"] });
  expect(await confirms(inbox.address, mail.code)).toBe(true);
  expect((await fetch(mail.link)).status).toBe(200);
  expect(mail).toMatchObject({ address: inbox.address, from_email: "no-reply@shop.example", to: [inbox.address] });
  expect(mail.text).toContain(mail.code);
  expect(mail.links[0]).toMatchObject({ kind: "confirm" });
});

test("waits for a code, or for a link", async () => {
  const inbox = await tempmail.inbox();
  const waits = [inbox.code(), inbox.link({ subject: "Confirm" })];
  await send(inbox.address, "Our offers");
  await signUp(inbox.address);
  // One mail is handed out once.
  const first = await Promise.race(waits);
  await signUp(inbox.address);
  const both = await Promise.all(waits);
  expect(both).toContain(first);
  expect(both[0]).toMatch(/^\d{6}$/);
  expect(both[1]).toMatch(/^http:.*\/confirm\?token=/);
});

test("never sees mail of before", async () => {
  const address = "returns@inbox.localhost";
  for (let run = 0; run < 3; run++) {
    await send(address, "Old mail", "Your code is 111111");
    const inbox = await tempmail.inbox({ address });
    await expect(inbox.wait({ timeout: 0 })).rejects.toMatchObject({ code: "wait_timeout", arrived: [] });
    await signUp(address);
    expect(await confirms(address, await inbox.code())).toBe(true);
  }
});

test("hands out each mail once, also those that a condition passed over", async () => {
  const inbox = await tempmail.inbox();
  for (const subject of ["one", "two", "three", "four"]) await send(inbox.address, subject);
  expect((await inbox.wait({ subject: "three" })).subject).toBe("three");
  expect((await inbox.wait()).subject).toBe("one");
  expect((await inbox.wait({ subject: "o" })).subject).toBe("two");
  expect((await inbox.wait()).subject).toBe("four");
  await expect(inbox.wait({ timeout: 0 })).rejects.toThrow(WaitTimeoutError);
  const listed = (await inbox.list()).map((mail) => mail.subject);
  expect(listed).toEqual(["one", "two", "three", "four"]);
});

test("hands out each mail once to waits in parallel", async () => {
  const inbox = await tempmail.inbox();
  const subjects = ["a", "b", "c", "d", "e"];
  const waits = subjects.map(() => inbox.wait());
  for (const subject of subjects) await send(inbox.address, subject);
  const mails = await Promise.all(waits);
  expect(mails.map((mail) => mail.subject).sort()).toEqual(subjects);
});

test("matches all conditions at once", async () => {
  const inbox = await tempmail.inbox();
  await send(inbox.address, "Invoice", "for Ada");
  await send(inbox.address, "Offer", "for Grace");
  await send(inbox.address, "Invoice", "for Grace");
  const mail = await inbox.wait({ subject: "invoice", text: "grace", to: inbox.address, from: "ADA@" });
  expect([mail.subject, mail.text.trim()]).toEqual(["Invoice", "for Grace"]);
});

test("says what came instead", async () => {
  const inbox = await tempmail.inbox();
  await send(inbox.address, "Welcome");
  const error: WaitTimeoutError = await inbox.wait({ subject: "Confirm", has: "code", timeout: 0 }).catch((error) => error);
  expect(error).toBeInstanceOf(WaitTimeoutError);
  expect(error).toMatchObject({ code: "wait_timeout", status: null, timeout: 0 });
  expect(error.arrived).toHaveLength(1);
  expect(error.message).toContain(`No mail to ${inbox.address} with "Confirm" in its subject, a code came within 0 s.`);
  expect(error.message).toMatch(/This came instead.*\n {2}\S+Z "Welcome" from "ada@example\.org" to "test-/);
});

test("says that nothing came", async () => {
  const inbox = await tempmail.inbox();
  await expect(inbox.wait({ timeout: 1_100 })).rejects.toThrow(/came within 1\.1 s\. No other mail came either\./);
});

test("shows invisible characters of subjects in messages", async () => {
  const inbox = await tempmail.inbox();
  await send(inbox.address, "=?utf-8?q?a=E2=80=8Bb?=");
  await expect(inbox.wait({ subject: "no", timeout: 0 })).rejects.toThrow('"a\\u{200b}b"');
});

test("says that a mail has no code, and no link", async () => {
  const inbox = await tempmail.inbox();
  await send(inbox.address, "Plain");
  const mail = await inbox.wait();
  expect([mail.codes, mail.links]).toEqual([[], []]);
  expect(() => mail.code).toThrow('The mail "Plain" from "ada@example.org" has no code.');
  expect(() => mail.link).toThrow(expect.objectContaining({ name: "TempmailError", code: "no_link" }));
});

test("ends a wait by its signal", async () => {
  const inbox = await tempmail.inbox();
  const controller = new AbortController();
  const wait = inbox.wait({ signal: controller.signal });
  controller.abort(new Error("enough"));
  await expect(wait).rejects.toThrow("enough");
  await send(inbox.address, "Later");
  expect((await inbox.wait()).subject).toBe("Later");
});

test("waits while the timers of the test are fake", async () => {
  const inbox = await tempmail.inbox();
  vi.useFakeTimers();
  try {
    await expect(inbox.wait({ timeout: 1_000 })).rejects.toThrow(WaitTimeoutError);
  } finally {
    vi.useRealTimers();
  }
});

test("reads raw mail and attachments, and deletes", async () => {
  const inbox = await tempmail.inbox();
  const type = 'Content-Type: text/csv; name="a.csv"\nContent-Disposition: attachment; filename="a.csv"\n';
  await send(inbox.address, "Report", "1,2", type);
  const mail = await inbox.wait({ has: "attachment" });
  expect(mail.attachments).toMatchObject([{ index: 0, filename: "a.csv", content_type: "text/csv" }]);
  const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
  expect(text(await inbox.attachment(mail, 0)).trim()).toBe("1,2");
  expect(text(await inbox.raw(mail))).toContain("Subject: Report");
  await inbox.delete(mail);
  expect(await inbox.list()).toEqual([]);
  await expect(inbox.raw(mail)).rejects.toMatchObject({ code: "not_found", status: 404 });
});

test("waits with the token of the team", async () => {
  const inbox = await tempmail.inbox();
  await send(inbox.address, "First");
  expect((await tempmail.wait({ address: inbox.address })).subject).toBe("First");
  await send(inbox.address, "Second");
  expect((await tempmail.wait({ address: inbox.address })).subject).toBe("Second");
  expect((await tempmail.wait({ address: inbox.address, since: inbox.since })).subject).toBe("First");
  const missed = tempmail.wait({ all: true, after: new Date(), timeout: 0 });
  await expect(missed).rejects.toThrow("No mail to any address of the tenant came within 0 s.");
});

test("ends with its inbox", async () => {
  const inbox = await tempmail.inbox();
  await inbox.close();
  const error = await inbox.wait().catch((error) => error);
  expect(error).toBeInstanceOf(TempmailError);
  expect(error.code).toBe("closed");
});
