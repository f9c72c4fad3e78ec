import { expect, test as base, type Page } from "@playwright/test";
import { fixtures, type TempmailFixtures } from "@tempmail/client/playwright";
import { signUp } from "../site.js";

const test = base.extend<TempmailFixtures>(fixtures);
const addresses = Array.from({ length: 100 }, (_, i) => `sign-up-${i}@inbox.localhost`);
const BROWSERS = 4;

/** Signs up at the page, with the code that comes, as a person does. */
async function confirm(page: Page, address: string, code: Promise<string>): Promise<string | null> {
  await page.goto("/");
  await page.getByLabel("Email").fill(address);
  await page.getByRole("button", { name: "Sign up" }).click();
  await page.getByLabel("Code").fill(await code);
  await page.getByRole("button", { name: "Confirm" }).click();
  const status = page.getByRole("status");
  await expect(status).not.toHaveText("We sent you a code");
  return status.textContent();
}

// A run finds the mails of the ones before at the same addresses, whose codes the site rejects.
for (const run of [1, 2, 3, 4, 5]) {
  test(`gives each of 100 parallel waits its own mail, run ${run}`, async ({ tempmail, playwright, baseURL }) => {
    test.setTimeout(300_000);
    for (const address of addresses) await signUp(address);
    const inboxes = await Promise.all(addresses.map((address) => tempmail.inbox({ address })));
    // All wait before the first one signs up.
    const codes = inboxes.map((inbox) => inbox.code({ timeout: 200_000 }));
    const browsers = await Promise.all(
      Array.from({ length: BROWSERS }, () => playwright.chromium.launch()),
    );
    const results = await Promise.all(
      browsers.map(async (browser, first) => {
        const page = await browser.newPage({ baseURL: baseURL! });
        const statuses = [];
        for (let i = first; i < addresses.length; i += BROWSERS) {
          statuses.push(await confirm(page, addresses[i]!, codes[i]!));
        }
        await browser.close();
        return statuses;
      }),
    );
    expect(results.flat()).toEqual(addresses.map(() => "Welcome!"));
  });
}
