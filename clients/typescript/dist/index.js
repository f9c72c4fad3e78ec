export { ApiError, TempmailError, UnreachableError, WaitTimeoutError } from "./errors.js";
export { Inbox } from "./inbox.js";
export { Mail } from "./mail.js";
export { Tempmail, tempmail } from "./tempmail.js";
