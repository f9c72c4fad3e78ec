import { expect, test as base } from "@playwright/test";
import { WaitTimeoutError } from "@tempmail/client";
import { fixtures, type TempmailFixtures } from "@tempmail/client/playwright";
import { send } from "../site.js";

const test = base.extend<TempmailFixtures>(fixtures);

test.describe("with options", () => {
  test.use({ tempmailOptions: { timeout: 0 } });

  test("uses them", async ({ inbox }) => {
    await expect(inbox.wait()).rejects.toThrow(WaitTimeoutError);
  });
});

test("extends the timeout of the test by that of a wait", async ({ inbox }) => {
  test.setTimeout(5_000);
  const wait = inbox.wait({ timeout: 20_000 });
  expect(test.info().timeout).toBe(25_000);
  await send(inbox.address, "Hello");
  await wait;
});

test("keeps the inbox of a test apart from others", async ({ tempmail, inbox }) => {
  const other = await tempmail.inbox();
  expect(other.address).not.toBe(inbox.address);
  await send(other.address, "For the other");
  await send(inbox.address, "For this one");
  expect((await inbox.wait()).subject).toBe("For this one");
});

test("waits in a page", async ({ page }) => {
  await page.goto("/");
  const options = { url: process.env.TEMPMAIL_CLIENT_URL!, token: process.env.TEMPMAIL_CLIENT_TOKEN! };
  const { code, listed } = await page.evaluate(async (options) => {
    const client = "/client/index.js";
    const { Tempmail } = (await import(client)) as typeof import("@tempmail/client");
    const inbox = await new Tempmail(options).inbox();
    await fetch("/api/sign-up", { method: "POST", body: JSON.stringify({ email: inbox.address }) });
    return { code: await inbox.code(), listed: await inbox.list() };
  }, options);
  expect(code).toMatch(/^\d{6}$/);
  expect(listed).toHaveLength(1);
});
