import { Tempmail } from "@tempmail/client";
import { describe, expect, test } from "vitest";
import { confirms, faulty, restart, send, signUp } from "../site.js";

describe.each(["cut", "lost", "limited", "away", "cdn", "dated", "short"])("behind a server that is %s", (fault) => {
  test("misses no mail, and hands out none twice", async () => {
    const tempmail = new Tempmail({ url: faulty(fault) });
    const inbox = await tempmail.inbox();
    const subjects = ["one", "two", "three", "four"];
    const received = [];
    for (const subject of subjects) {
      const wait = inbox.wait();
      // More than one connection is cut meanwhile, and more than one wait ends.
      await new Promise((resolve) => setTimeout(resolve, fault === "short" ? 1_500 : 700));
      await send(inbox.address, subject);
      received.push((await wait).subject);
    }
    expect(received).toEqual(subjects);
    await tempmail.close();
  });
});

describe.each(["SIGTERM", "SIGKILL"] as const)("when the server is ended by %s", (signal) => {
  test("goes on with its wait after the restart", async () => {
    const tempmail = new Tempmail();
    const inbox = await tempmail.inbox();
    await send(inbox.address, "Before");
    const wait = inbox.wait({ subject: "Confirm" });
    await restart(signal);
    await signUp(inbox.address);
    expect(await confirms(inbox.address, (await wait).code)).toBe(true);
    expect((await inbox.wait()).subject).toBe("Before");
    await tempmail.close();
  });
});

test("replaces a token that ends while it waits", async () => {
  const ids: string[] = [];
  const team = process.env.TEMPMAIL_CLIENT_TOKEN!;
  const tempmail = new Tempmail({
    fetch: async (url, init) => {
      const response = await fetch(url, init);
      if (String(url).endsWith("/v1/tokens")) ids.push(((await response.clone().json()) as { id: string }).id);
      return response;
    },
  });
  const inbox = await tempmail.inbox();
  const wait = inbox.wait();
  const revoked = `${process.env.TEMPMAIL_CLIENT_URL}/v1/tokens/${ids[0]}`;
  expect((await fetch(revoked, { method: "DELETE", headers: { "x-api-token": team } })).status).toBe(204);
  await expect.poll(() => ids.length, { timeout: 60_000 }).toBe(2);
  await send(inbox.address, "After");
  expect((await wait).subject).toBe("After");
  await tempmail.close();
});
