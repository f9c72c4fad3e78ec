import { once } from "node:events";
import { createServer } from "node:net";
import { ApiError, Tempmail, UnreachableError } from "@tempmail/client";
import { expect, test, vi } from "vitest";
import { faulty } from "../site.js";

test("says that there is no token", async () => {
  vi.stubEnv("TEMPMAIL_CLIENT_TOKEN", "");
  try {
    await expect(new Tempmail().inbox()).rejects.toThrow("There is no token. Set TEMPMAIL_CLIENT_TOKEN");
  } finally {
    vi.unstubAllEnvs();
  }
});

test.each([
  [{ token: `tm_live_${"0".repeat(64)}` }, {}, 401, "invalid_token", /was revoked: create one/],
  [{}, { domain: "elsewhere.example" }, 404, "not_found", /receives mail for the domain/],
  [{}, { address: "no address" }, 400, "invalid_request", /an address needs a domain/],
] as const)("says what to do about %o %o", async (options, inbox, status, code, message) => {
  const error = await new Tempmail(options).inbox(inbox).catch((error) => error);
  expect(error).toBeInstanceOf(ApiError);
  expect(error).toMatchObject({ status, code, request: "POST /v1/tokens" });
  expect(error.message).toMatch(message);
  expect(error.message).toContain(error.advice);
});

test("says that a server is not there, and soon", async () => {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  server.close();
  const url = `http://127.0.0.1:${port}`;
  const error = await new Tempmail({ url, retryFor: 3_600_000 }).inbox().catch((error) => error);
  expect(error).toBeInstanceOf(UnreachableError);
  expect(error).toMatchObject({ status: null, code: "unreachable" });
  expect(error.message).toMatch(/^No answer from http:\S+: .*ECONNREFUSED.*Check that tempmail runs there/);
});

test("says that something else answers", async () => {
  const login = new Tempmail({ url: faulty("login") });
  await expect(login.inbox()).rejects.toMatchObject({ code: "unexpected_answer", status: 302 });
  const page = new Tempmail({ url: process.env.SITE_URL! });
  await expect(page.inbox()).rejects.toThrow("something else may answer there");
  await expect(new Tempmail({ url: "localhost:8080" }).inbox()).rejects.toThrow("is no http or https URL");
});

test("refuses a timeout that is no time", async () => {
  const inbox = await new Tempmail().inbox();
  await expect(inbox.wait({ timeout: NaN })).rejects.toMatchObject({ code: "invalid_option" });
});
