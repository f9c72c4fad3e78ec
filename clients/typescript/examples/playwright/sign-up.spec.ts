import { expect, test as base } from "@playwright/test";
import { fixtures, type TempmailFixtures } from "@tempmail/client/playwright";

const test = base.extend<TempmailFixtures>(fixtures);

test("confirms the address with the code", async ({ page, inbox }) => {
  await page.goto("/");
  await page.getByLabel("Email").fill(inbox.address);
  await page.getByRole("button", { name: "Sign up" }).click();

  const mail = await inbox.wait({ subject: "Confirm your address" });
  await page.getByLabel("Code").fill(mail.code);
  await page.getByRole("button", { name: "Confirm" }).click();
  await expect(page.getByRole("status")).toHaveText("Welcome!");
});

test("confirms the address with the link", async ({ page, inbox }) => {
  await page.goto("/");
  await page.getByLabel("Email").fill(inbox.address);
  await page.getByRole("button", { name: "Sign up" }).click();

  await page.goto(await inbox.link());
  await expect(page.getByRole("status")).toHaveText("Welcome!");
});
