import { tempmail } from "@tempmail/client";
import { expect, test } from "vitest";

const post = (path: string, body: object) =>
  fetch(process.env.SITE_URL + path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });

// The timeout is above that of the wait, so that a mail that does not come is reported by what came instead.
test("confirms the address with the code", { timeout: 90_000 }, async () => {
  const inbox = await tempmail.inbox();
  await post("/api/sign-up", { email: inbox.address });

  const mail = await inbox.wait({ subject: "Confirm your address" });
  const answer = await post("/api/confirm", { email: inbox.address, code: mail.code });
  expect(answer.status).toBe(200);
});
