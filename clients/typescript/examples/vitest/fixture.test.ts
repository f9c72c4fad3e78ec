import { Tempmail, type Inbox } from "@tempmail/client";
import { expect, test as base } from "vitest";

const test = base.extend<{ inbox: Inbox }>({
  inbox: async ({}, use) => {
    const tempmail = new Tempmail();
    await use(await tempmail.inbox());
    await tempmail.close();
  },
});

test("has an address of its own", async ({ inbox }) => {
  expect(inbox.address).toMatch(/^test-\w+@/);
});
