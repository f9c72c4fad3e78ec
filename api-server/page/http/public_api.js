// What needs no credential.

import { request } from "./request.js";

export const listDomains = async () => (await request("/api/domains")).domains;
export const readConfig = () => request("/v1/config");
export const createMailbox = (address, password) =>
  request("/api/accounts", { method: "POST", body: { address, password } });
export const signIn = (address, password) => request("/api/token", { method: "POST", body: { address, password } });
