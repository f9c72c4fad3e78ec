export { ApiError, TempmailError, UnreachableError, WaitTimeoutError } from "./errors.js";
export { Inbox } from "./inbox.js";
export { Mail } from "./mail.js";
export { Tempmail, tempmail, type InboxOptions, type StartOptions, type TempmailOptions } from "./tempmail.js";
export type { Code, Email, EmailSummary, Link, ServerConfig } from "./types.js";
export type { Has, Scope, WaitOptions } from "./wait.js";
