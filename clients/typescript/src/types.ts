/** What the server sends and takes, named; the fields are those of `docs/api.md`. */

import type { components, paths } from "./openapi.js";

type Json<Content> = Content extends { content: { "application/json": infer Body } } ? Body : never;

/** Body of `POST /v1/wait`. */
export type WaitRequest = Json<NonNullable<paths["/v1/wait"]["post"]["requestBody"]>>;
/** Answer of `POST /v1/wait` with mail. */
export type WaitAnswer = Json<paths["/v1/wait"]["post"]["responses"][200]>;
/** Answer of `POST /v1/tokens`. */
export type CreatedToken = Json<paths["/v1/tokens"]["post"]["responses"][201]>;
/** Public configuration of the server. */
export type ServerConfig = components["schemas"]["ServerConfig"];
/** A whole mail: texts, header section, attachments. */
export type Email = components["schemas"]["Email"];
/** A mail in a list. */
export type EmailSummary = components["schemas"]["EmailSummary"];
/** A list of mails, newest first, and the cursor behind them. */
export type NewEmails = components["schemas"]["NewEmails"];
/** A one-time code of a mail. */
export type Code = WaitAnswer["codes"][number];
/** An action link of a mail: what its reader is asked to open. */
export type Link = WaitAnswer["links"][number];

type Operations = { [Path in keyof paths]: NonNullable<paths[Path]["get" | "post" | "delete"]> }[keyof paths];
type ResponseOf<Operation> = Operation extends { responses: infer All } ? All[keyof All] : never;
type CodeOf<Body> = Body extends { error: infer Code extends string } ? Code : never;
/** The error codes that the called operations have. */
export type ServerCode = CodeOf<Json<ResponseOf<Operations>>>;
