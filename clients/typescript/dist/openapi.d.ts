export interface paths {
    "/v1/config": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Show the public configuration */
        get: operations["getConfig"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/domain/{domain}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Wait for mail to every address under a domain */
        get: operations["waitOnDomain"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/email/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Show a message */
        get: operations["getEmail"];
        put?: never;
        post?: never;
        /** Delete a message */
        delete: operations["deleteEmail"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/email/{id}/attachments/{index}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Download an attachment */
        get: operations["getEmailAttachment"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/email/{id}/raw": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Download a message as it was received */
        get: operations["getRawEmail"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/inbox/{address}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Wait for mail to an address */
        get: operations["waitOnInbox"];
        put?: never;
        post?: never;
        /** Delete every message of an address */
        delete: operations["clearInbox"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/me": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Wait for mail to everything the tenant owns
         * @description The tenant's mailboxes, and every address under its verified custom domains.
         */
        get: operations["waitOnOwned"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tokens": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the live tokens
         * @description Revoked and expired tokens are listed for 7 more days; minted ones are not listed.
         */
        get: operations["listLiveTokens"];
        put?: never;
        /**
         * Create a live token, or mint one for an address
         * @description With `address` the token is minted: it waits for, reads and deletes mail of that exact address and does nothing else, everything else is 404 to it, and it ends with the token that minted it. It does not count towards the tenant's tokens.
         */
        post: operations["createLiveToken"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tokens/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Revoke a live token
         * @description A token may revoke itself.
         */
        delete: operations["revokeLiveToken"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/wait": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Wait for one mail that matches
         * @description Waits on one of `address`, `domain` (a verified custom domain of the tenant) and `all` (everything that it owns). With `since` or `after` the answer is the oldest match after both, so the same request has the same answer. With neither it is the newest match that there is at `address`, or else the first that comes; `domain` and `all` need one of them. Like a long-poll it is the one wait of the token. `204` also comes early, after 10000 messages, or 200 whose contents were looked at: continue from `X-Next-Since`.
         */
        post: operations["waitForEmail"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /** @description The public configuration. */
        ServerConfig: {
            local_part_rules: components["schemas"]["LocalPartRules"];
            /** Format: int64 */
            long_poll_seconds: number;
            mx_host: string;
            system_domains: components["schemas"]["DomainName"][];
            /**
             * Format: int64
             * @description Retention of mail that belongs to no tenant.
             */
            ttl_seconds: number;
        };
        /** @description Rules for the local part of a new mailbox. */
        LocalPartRules: {
            max_length: number;
            min_length: number;
            pattern: string;
            reserved: string[];
        };
        /** @description The name of a system domain. */
        DomainName: {
            default: boolean;
            domain: string;
        };
        /** @description New mail, and the cursor to continue from. */
        NewEmails: {
            emails: components["schemas"]["EmailSummary"][];
            next_since: string;
        };
        /** @description The summary of a message in the long-polls and streams of `/v1`. */
        EmailSummary: {
            address: string;
            /** Format: date-time */
            created_at: string;
            from_email: string;
            /** Format: uuid */
            id: string;
            preview_text: string;
            /** Format: int32 */
            size: number;
            subject: string;
        };
        /** @description The full message, as `/v1` shows it. */
        Email: {
            address: string;
            attachments: components["schemas"]["AttachmentElement"][];
            /** @description The one-time codes that were found, best first. */
            codes: components["schemas"]["CodeElement"][];
            /** Format: date-time */
            created_at: string;
            /** Format: date-time */
            expires_at: string;
            from: string;
            from_email: string;
            headers: components["schemas"]["HeaderField"][];
            /** @description As `html_body`. */
            html: string;
            /** @description As received: sanitize it before a browser shows it. */
            html_body: string;
            /** Format: uuid */
            id: string;
            /** @description The action links that were found, best first. */
            links: components["schemas"]["LinkElement"][];
            preview_text: string;
            sender: string;
            /** @description What a reader sees, up to 256 KiB: the plain text, or where there is none, the HTML as it is shown. */
            shown_text: string;
            /** Format: int32 */
            size: number;
            subject: string;
            /** @description As `text_body`. */
            text: string;
            /** @description The plain text, with line feeds; empty where the message has none. */
            text_body: string;
            to: string[];
        };
        /** @description An attachment, without its data. */
        AttachmentElement: {
            content_id: string | null;
            content_type: string;
            filename: string | null;
            index: number;
            inline: boolean;
            size: number;
        };
        /** @description A one-time code: what proves a person or a device now. */
        CodeElement: {
            /** @description 4 to 12 of `A-Z a-z 0-9 -`. */
            code: string;
            /**
             * Format: float
             * @description From 0.5 to 0.99.
             */
            confidence: number;
            /** @description Why it is one, in English. */
            reason: string;
            /** @description `subject`, `text` or `html`. */
            source: string;
        };
        /** @description A field of the header section, in the order of the message. */
        HeaderField: {
            name: string;
            value: string;
        };
        /** @description A link that completes what the mail is about. */
        LinkElement: {
            /**
             * Format: float
             * @description From 0.5 to 0.99.
             */
            confidence: number;
            /** @description Where it goes. */
            host: string;
            /** @description Whether the host and the author have the same registrable domain. */
            host_matches_from: boolean;
            /**
             * @description `confirm`, `reset_password`, `sign_in`, `accept_invitation`, `unlock`, `confirm_unsubscribe` or
             *     `secure_account`.
             */
            kind: string;
            /** @description Why it is one, in English. */
            reason: string;
            /** @description `html` or `text`. */
            source: string;
            /** @description What the link shows. */
            text: string;
            /** @description Absolute http or https, as it was sent. */
            url: string;
        };
        /** @description A page of tokens, newest first. */
        TokenList: {
            tokens: components["schemas"]["TokenRecord"][];
        };
        /** @description An API token, without its secret. */
        TokenRecord: {
            /** Format: date-time */
            created_at: string;
            /** Format: date-time */
            expires_at: string | null;
            /** @description The last four characters of the token. */
            hint: string;
            /** Format: uuid */
            id: string;
            /** @description `pro` or `live`. */
            kind: string;
            /** Format: date-time */
            last_used_at: string | null;
            name: string;
            /** Format: date-time */
            revoked_at: string | null;
            /** @description The drop-in surfaces that it is for, and for nothing else; empty for other tokens. */
            surfaces: string[];
        };
        /** @description A new live token, or a minted one. */
        CreatedLiveToken: {
            /** @description The address that it is minted for. */
            address: string | null;
            /** Format: date-time */
            created_at: string;
            /** Format: date-time */
            expires_at: string | null;
            /** @description The last four characters of the token. */
            hint: string;
            /** Format: uuid */
            id: string;
            /** @description `pro` or `live`. */
            kind: string;
            /** Format: date-time */
            last_used_at: string | null;
            name: string;
            /** Format: date-time */
            revoked_at: string | null;
            /** @description A cursor of the moment at which it was minted: mail that comes later comes after it. */
            since: string | null;
            /** @description The drop-in surfaces that it is for, and for nothing else; empty for other tokens. */
            surfaces: string[];
            /** @description The token. This is the only time that it is shown. */
            token: string;
        };
        /**
         * @description What a mail may have, as `match.has` says it.
         * @enum {string}
         */
        EmailFeature: "code" | "link" | "attachment";
        /** @description The message that was waited for, with its codes and links. */
        FoundEmail: {
            /** @description Best first. */
            codes: components["schemas"]["CodeElement"][];
            /** @description The summary, or with `full` the whole message. */
            email: {
                address: string;
                attachments?: components["schemas"]["AttachmentElement"][];
                /** @description The one-time codes that were found, best first. */
                codes?: components["schemas"]["CodeElement"][];
                /** Format: date-time */
                created_at: string;
                /** Format: date-time */
                expires_at?: string;
                from?: string;
                from_email: string;
                headers?: components["schemas"]["HeaderField"][];
                /** @description As `html_body`. */
                html?: string;
                /** @description As received: sanitize it before a browser shows it. */
                html_body?: string;
                /** Format: uuid */
                id: string;
                /** @description The action links that were found, best first. */
                links?: components["schemas"]["LinkElement"][];
                preview_text: string;
                sender?: string;
                /** @description What a reader sees, up to 256 KiB: the plain text, or where there is none, the HTML as it is shown. */
                shown_text?: string;
                /** Format: int32 */
                size: number;
                subject: string;
                /** @description As `text_body`. */
                text?: string;
                /** @description The plain text, with line feeds; empty where the message has none. */
                text_body?: string;
                to?: string[];
            };
            /** @description Best first. */
            links: components["schemas"]["LinkElement"][];
            /** @description The cursor after this message. */
            next_since: string;
        };
    };
    responses: {
        /** @description `payload_too_large` */
        v1_payload_too_large: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": {
                    /**
                     * @description The published code.
                     * @enum {string}
                     */
                    error: "payload_too_large";
                };
            };
        };
        /** @description `unsupported_media_type` */
        v1_unsupported_media_type: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": {
                    /**
                     * @description The published code.
                     * @enum {string}
                     */
                    error: "unsupported_media_type";
                };
            };
        };
        /** @description `misdirected_request` */
        v1_misdirected_request: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": {
                    /**
                     * @description The published code.
                     * @enum {string}
                     */
                    error: "misdirected_request";
                };
            };
        };
        /** @description `rate_limit_exceeded` */
        v1_rate_limit_exceeded: {
            headers: {
                /** @description What remains of the limit (draft-ietf-httpapi-ratelimit-headers). */
                RateLimit: string;
                /** @description The limit. */
                "RateLimit-Policy": string;
                /** @description Seconds. */
                "Retry-After": number;
                [name: string]: unknown;
            };
            content: {
                "application/json": {
                    /**
                     * @description The published code.
                     * @enum {string}
                     */
                    error: "rate_limit_exceeded";
                };
            };
        };
        /** @description `internal_error` */
        v1_internal_error: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": {
                    /**
                     * @description The published code.
                     * @enum {string}
                     */
                    error: "internal_error";
                };
            };
        };
        /** @description `unavailable` */
        v1_unavailable: {
            headers: {
                /** @description Seconds. */
                "Retry-After": number;
                [name: string]: unknown;
            };
            content: {
                "application/json": {
                    /**
                     * @description The published code.
                     * @enum {string}
                     */
                    error: "unavailable";
                };
            };
        };
        /** @description `invalid_request` */
        v1_invalid_request: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": {
                    /**
                     * @description The published code.
                     * @enum {string}
                     */
                    error: "invalid_request";
                };
            };
        };
        /** @description `account_disabled` */
        v1_account_disabled: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": {
                    /**
                     * @description The published code.
                     * @enum {string}
                     */
                    error: "account_disabled";
                };
            };
        };
        /** @description `not_found` */
        v1_not_found: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": {
                    /**
                     * @description The published code.
                     * @enum {string}
                     */
                    error: "not_found";
                };
            };
        };
        /** @description `session_expired` */
        v1_session_expired: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": {
                    /**
                     * @description The published code.
                     * @enum {string}
                     */
                    error: "session_expired";
                };
            };
        };
        /** @description `email_expired` */
        v1_email_expired: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": {
                    /**
                     * @description The published code.
                     * @enum {string}
                     */
                    error: "email_expired";
                };
            };
        };
        /** @description `request_timeout` */
        v1_request_timeout: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": {
                    /**
                     * @description The published code.
                     * @enum {string}
                     */
                    error: "request_timeout";
                };
            };
        };
        /** @description `managed_by_kubernetes` */
        v1_managed_by_kubernetes: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": {
                    /**
                     * @description The published code.
                     * @enum {string}
                     */
                    error: "managed_by_kubernetes";
                };
            };
        };
    };
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    getConfig: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The public configuration; may be cached for 60 s. */
            200: {
                headers: {
                    /** @description What remains of the limit (draft-ietf-httpapi-ratelimit-headers). */
                    RateLimit?: string;
                    /** @description The limit. */
                    "RateLimit-Policy"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ServerConfig"];
                };
            };
            413: components["responses"]["v1_payload_too_large"];
            415: components["responses"]["v1_unsupported_media_type"];
            421: components["responses"]["v1_misdirected_request"];
            429: components["responses"]["v1_rate_limit_exceeded"];
            500: components["responses"]["v1_internal_error"];
            503: components["responses"]["v1_unavailable"];
        };
    };
    waitOnDomain: {
        parameters: {
            query?: {
                /** @description Cursor of an earlier answer: only newer mail counts. `0`: all unexpired mail counts, the oldest first. */
                since?: string;
                /** @description Answer as soon as this many messages have arrived; above 50 counts as 50. */
                count?: number;
                /** @description Messages in one answer; above 50 counts as 50. */
                limit?: number;
                /** @description Only mail whose From contains this, ignoring case. */
                from?: string;
                /** @description Only mail whose Subject contains this, ignoring case. */
                subject?: string;
            };
            header?: {
                /** @description `wait=N` (RFC 7240): wait N seconds at most, up to 25; `wait=0` never waits. The answer repeats it in `Preference-Applied`. Anything else is ignored. */
                Prefer?: string;
            };
            path: {
                /** @description A verified custom domain of the tenant. */
                domain: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description There is mail, newest first. */
            200: {
                headers: {
                    /** @description What remains of the limit (draft-ietf-httpapi-ratelimit-headers). */
                    RateLimit: string;
                    /** @description The limit. */
                    "RateLimit-Policy": string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["NewEmails"];
                };
            };
            /** @description No mail within 25 s, or as long as was preferred: send the request again. */
            204: {
                headers: {
                    /** @description What remains of the limit (draft-ietf-httpapi-ratelimit-headers). */
                    RateLimit: string;
                    /** @description The limit. */
                    "RateLimit-Policy": string;
                    /** @description The cursor to continue from. */
                    "X-Next-Since": string;
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["v1_invalid_request"];
            /** @description `authentication_required`, `invalid_token` */
            401: {
                headers: {
                    /** @description The credential to present. */
                    "WWW-Authenticate": string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /**
                         * @description The published code.
                         * @enum {string}
                         */
                        error: "authentication_required" | "invalid_token";
                    };
                };
            };
            403: components["responses"]["v1_account_disabled"];
            404: components["responses"]["v1_not_found"];
            413: components["responses"]["v1_payload_too_large"];
            415: components["responses"]["v1_unsupported_media_type"];
            421: components["responses"]["v1_misdirected_request"];
            /** @description `rate_limit_exceeded`, `token_busy` */
            429: {
                headers: {
                    /** @description What remains of the limit (draft-ietf-httpapi-ratelimit-headers). */
                    RateLimit: string;
                    /** @description The limit. */
                    "RateLimit-Policy": string;
                    /** @description Seconds. */
                    "Retry-After": number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /**
                         * @description The published code.
                         * @enum {string}
                         */
                        error: "rate_limit_exceeded" | "token_busy";
                    };
                };
            };
            440: components["responses"]["v1_session_expired"];
            500: components["responses"]["v1_internal_error"];
            503: components["responses"]["v1_unavailable"];
        };
    };
    getEmail: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Id of the message. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The whole message. */
            200: {
                headers: {
                    /** @description What remains of the limit (draft-ietf-httpapi-ratelimit-headers). */
                    RateLimit: string;
                    /** @description The limit. */
                    "RateLimit-Policy": string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Email"];
                };
            };
            400: components["responses"]["v1_invalid_request"];
            /** @description `authentication_required`, `invalid_token` */
            401: {
                headers: {
                    /** @description The credential to present. */
                    "WWW-Authenticate": string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /**
                         * @description The published code.
                         * @enum {string}
                         */
                        error: "authentication_required" | "invalid_token";
                    };
                };
            };
            403: components["responses"]["v1_account_disabled"];
            404: components["responses"]["v1_not_found"];
            410: components["responses"]["v1_email_expired"];
            413: components["responses"]["v1_payload_too_large"];
            415: components["responses"]["v1_unsupported_media_type"];
            421: components["responses"]["v1_misdirected_request"];
            429: components["responses"]["v1_rate_limit_exceeded"];
            440: components["responses"]["v1_session_expired"];
            500: components["responses"]["v1_internal_error"];
            503: components["responses"]["v1_unavailable"];
        };
    };
    deleteEmail: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Id of the message. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The message is deleted. */
            204: {
                headers: {
                    /** @description What remains of the limit (draft-ietf-httpapi-ratelimit-headers). */
                    RateLimit: string;
                    /** @description The limit. */
                    "RateLimit-Policy": string;
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["v1_invalid_request"];
            /** @description `authentication_required`, `invalid_token` */
            401: {
                headers: {
                    /** @description The credential to present. */
                    "WWW-Authenticate": string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /**
                         * @description The published code.
                         * @enum {string}
                         */
                        error: "authentication_required" | "invalid_token";
                    };
                };
            };
            403: components["responses"]["v1_account_disabled"];
            404: components["responses"]["v1_not_found"];
            410: components["responses"]["v1_email_expired"];
            413: components["responses"]["v1_payload_too_large"];
            415: components["responses"]["v1_unsupported_media_type"];
            421: components["responses"]["v1_misdirected_request"];
            429: components["responses"]["v1_rate_limit_exceeded"];
            440: components["responses"]["v1_session_expired"];
            500: components["responses"]["v1_internal_error"];
            503: components["responses"]["v1_unavailable"];
        };
    };
    getEmailAttachment: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Id of the message. */
                id: string;
                /** @description Index in the list of attachments, from 0. */
                index: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The attachment, decoded. */
            200: {
                headers: {
                    /** @description What remains of the limit (draft-ietf-httpapi-ratelimit-headers). */
                    RateLimit: string;
                    /** @description The limit. */
                    "RateLimit-Policy": string;
                    [name: string]: unknown;
                };
                content: {
                    "*/*": unknown;
                };
            };
            400: components["responses"]["v1_invalid_request"];
            /** @description `authentication_required`, `invalid_token` */
            401: {
                headers: {
                    /** @description The credential to present. */
                    "WWW-Authenticate": string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /**
                         * @description The published code.
                         * @enum {string}
                         */
                        error: "authentication_required" | "invalid_token";
                    };
                };
            };
            403: components["responses"]["v1_account_disabled"];
            404: components["responses"]["v1_not_found"];
            410: components["responses"]["v1_email_expired"];
            413: components["responses"]["v1_payload_too_large"];
            415: components["responses"]["v1_unsupported_media_type"];
            421: components["responses"]["v1_misdirected_request"];
            429: components["responses"]["v1_rate_limit_exceeded"];
            440: components["responses"]["v1_session_expired"];
            500: components["responses"]["v1_internal_error"];
            503: components["responses"]["v1_unavailable"];
        };
    };
    getRawEmail: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Id of the message. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The original, with trace fields. */
            200: {
                headers: {
                    /** @description What remains of the limit (draft-ietf-httpapi-ratelimit-headers). */
                    RateLimit: string;
                    /** @description The limit. */
                    "RateLimit-Policy": string;
                    [name: string]: unknown;
                };
                content: {
                    "message/rfc822": unknown;
                };
            };
            400: components["responses"]["v1_invalid_request"];
            /** @description `authentication_required`, `invalid_token` */
            401: {
                headers: {
                    /** @description The credential to present. */
                    "WWW-Authenticate": string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /**
                         * @description The published code.
                         * @enum {string}
                         */
                        error: "authentication_required" | "invalid_token";
                    };
                };
            };
            403: components["responses"]["v1_account_disabled"];
            404: components["responses"]["v1_not_found"];
            410: components["responses"]["v1_email_expired"];
            413: components["responses"]["v1_payload_too_large"];
            415: components["responses"]["v1_unsupported_media_type"];
            421: components["responses"]["v1_misdirected_request"];
            429: components["responses"]["v1_rate_limit_exceeded"];
            440: components["responses"]["v1_session_expired"];
            500: components["responses"]["v1_internal_error"];
            503: components["responses"]["v1_unavailable"];
        };
    };
    waitOnInbox: {
        parameters: {
            query?: {
                /** @description Cursor of an earlier answer: only newer mail counts. `0`: all unexpired mail counts, the oldest first. */
                since?: string;
                /** @description Answer as soon as this many messages have arrived; above 50 counts as 50. */
                count?: number;
                /** @description Messages in one answer; above 50 counts as 50. */
                limit?: number;
                /** @description Only mail whose From contains this, ignoring case. */
                from?: string;
                /** @description Only mail whose Subject contains this, ignoring case. */
                subject?: string;
            };
            header?: {
                /** @description `wait=N` (RFC 7240): wait N seconds at most, up to 25; `wait=0` never waits. The answer repeats it in `Preference-Applied`. Anything else is ignored. */
                Prefer?: string;
            };
            path: {
                /** @description The exact address. */
                address: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description There is mail, newest first. */
            200: {
                headers: {
                    /** @description What remains of the limit (draft-ietf-httpapi-ratelimit-headers). */
                    RateLimit: string;
                    /** @description The limit. */
                    "RateLimit-Policy": string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["NewEmails"];
                };
            };
            /** @description No mail within 25 s, or as long as was preferred: send the request again. */
            204: {
                headers: {
                    /** @description What remains of the limit (draft-ietf-httpapi-ratelimit-headers). */
                    RateLimit: string;
                    /** @description The limit. */
                    "RateLimit-Policy": string;
                    /** @description The cursor to continue from. */
                    "X-Next-Since": string;
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["v1_invalid_request"];
            /** @description `authentication_required`, `invalid_token` */
            401: {
                headers: {
                    /** @description The credential to present. */
                    "WWW-Authenticate": string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /**
                         * @description The published code.
                         * @enum {string}
                         */
                        error: "authentication_required" | "invalid_token";
                    };
                };
            };
            403: components["responses"]["v1_account_disabled"];
            404: components["responses"]["v1_not_found"];
            413: components["responses"]["v1_payload_too_large"];
            415: components["responses"]["v1_unsupported_media_type"];
            421: components["responses"]["v1_misdirected_request"];
            /** @description `addr_busy`, `rate_limit_exceeded`, `token_busy` */
            429: {
                headers: {
                    /** @description What remains of the limit (draft-ietf-httpapi-ratelimit-headers). */
                    RateLimit: string;
                    /** @description The limit. */
                    "RateLimit-Policy": string;
                    /** @description Seconds. */
                    "Retry-After": number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /**
                         * @description The published code.
                         * @enum {string}
                         */
                        error: "addr_busy" | "rate_limit_exceeded" | "token_busy";
                    };
                };
            };
            440: components["responses"]["v1_session_expired"];
            500: components["responses"]["v1_internal_error"];
            503: components["responses"]["v1_unavailable"];
        };
    };
    clearInbox: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The exact address. */
                address: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The messages are deleted. */
            204: {
                headers: {
                    /** @description What remains of the limit (draft-ietf-httpapi-ratelimit-headers). */
                    RateLimit: string;
                    /** @description The limit. */
                    "RateLimit-Policy": string;
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["v1_invalid_request"];
            /** @description `authentication_required`, `invalid_token` */
            401: {
                headers: {
                    /** @description The credential to present. */
                    "WWW-Authenticate": string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /**
                         * @description The published code.
                         * @enum {string}
                         */
                        error: "authentication_required" | "invalid_token";
                    };
                };
            };
            403: components["responses"]["v1_account_disabled"];
            404: components["responses"]["v1_not_found"];
            413: components["responses"]["v1_payload_too_large"];
            415: components["responses"]["v1_unsupported_media_type"];
            421: components["responses"]["v1_misdirected_request"];
            429: components["responses"]["v1_rate_limit_exceeded"];
            440: components["responses"]["v1_session_expired"];
            500: components["responses"]["v1_internal_error"];
            503: components["responses"]["v1_unavailable"];
        };
    };
    waitOnOwned: {
        parameters: {
            query?: {
                /** @description Cursor of an earlier answer: only newer mail counts. `0`: all unexpired mail counts, the oldest first. */
                since?: string;
                /** @description Answer as soon as this many messages have arrived; above 50 counts as 50. */
                count?: number;
                /** @description Messages in one answer; above 50 counts as 50. */
                limit?: number;
                /** @description Only mail whose From contains this, ignoring case. */
                from?: string;
                /** @description Only mail whose Subject contains this, ignoring case. */
                subject?: string;
            };
            header?: {
                /** @description `wait=N` (RFC 7240): wait N seconds at most, up to 25; `wait=0` never waits. The answer repeats it in `Preference-Applied`. Anything else is ignored. */
                Prefer?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description There is mail, newest first. */
            200: {
                headers: {
                    /** @description What remains of the limit (draft-ietf-httpapi-ratelimit-headers). */
                    RateLimit: string;
                    /** @description The limit. */
                    "RateLimit-Policy": string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["NewEmails"];
                };
            };
            /** @description No mail within 25 s, or as long as was preferred: send the request again. */
            204: {
                headers: {
                    /** @description What remains of the limit (draft-ietf-httpapi-ratelimit-headers). */
                    RateLimit: string;
                    /** @description The limit. */
                    "RateLimit-Policy": string;
                    /** @description The cursor to continue from. */
                    "X-Next-Since": string;
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["v1_invalid_request"];
            /** @description `authentication_required`, `invalid_token` */
            401: {
                headers: {
                    /** @description The credential to present. */
                    "WWW-Authenticate": string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /**
                         * @description The published code.
                         * @enum {string}
                         */
                        error: "authentication_required" | "invalid_token";
                    };
                };
            };
            403: components["responses"]["v1_account_disabled"];
            404: components["responses"]["v1_not_found"];
            413: components["responses"]["v1_payload_too_large"];
            415: components["responses"]["v1_unsupported_media_type"];
            421: components["responses"]["v1_misdirected_request"];
            /** @description `rate_limit_exceeded`, `token_busy` */
            429: {
                headers: {
                    /** @description What remains of the limit (draft-ietf-httpapi-ratelimit-headers). */
                    RateLimit: string;
                    /** @description The limit. */
                    "RateLimit-Policy": string;
                    /** @description Seconds. */
                    "Retry-After": number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /**
                         * @description The published code.
                         * @enum {string}
                         */
                        error: "rate_limit_exceeded" | "token_busy";
                    };
                };
            };
            440: components["responses"]["v1_session_expired"];
            500: components["responses"]["v1_internal_error"];
            503: components["responses"]["v1_unavailable"];
        };
    };
    listLiveTokens: {
        parameters: {
            query?: {
                /** @description Page of 1000, from 1 to 100; a page with fewer than 1000 is the last one. */
                page?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page, newest first. */
            200: {
                headers: {
                    /** @description What remains of the limit (draft-ietf-httpapi-ratelimit-headers). */
                    RateLimit: string;
                    /** @description The limit. */
                    "RateLimit-Policy": string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TokenList"];
                };
            };
            400: components["responses"]["v1_invalid_request"];
            /** @description `authentication_required`, `invalid_token` */
            401: {
                headers: {
                    /** @description The credential to present. */
                    "WWW-Authenticate": string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /**
                         * @description The published code.
                         * @enum {string}
                         */
                        error: "authentication_required" | "invalid_token";
                    };
                };
            };
            403: components["responses"]["v1_account_disabled"];
            404: components["responses"]["v1_not_found"];
            413: components["responses"]["v1_payload_too_large"];
            415: components["responses"]["v1_unsupported_media_type"];
            421: components["responses"]["v1_misdirected_request"];
            429: components["responses"]["v1_rate_limit_exceeded"];
            440: components["responses"]["v1_session_expired"];
            500: components["responses"]["v1_internal_error"];
            503: components["responses"]["v1_unavailable"];
        };
    };
    createLiveToken: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /**
                     * @description Without it the token never expires.
                     * @example 30
                     */
                    expires_in_days?: number | null;
                    /**
                     * @default live
                     * @example live
                     * @enum {string|null}
                     */
                    kind?: "live" | null;
                    /**
                     * @description A name for people to know the token by; no control characters.
                     * @example continuous integration
                     */
                    name: string;
                    /**
                     * @description Drop-in surfaces: a live token that works on these and nowhere else.
                     * @example [
                     *       "mailpit"
                     *     ]
                     */
                    surfaces?: ("mailpit" | "mailhog" | "mailosaur")[] | null;
                } | {
                    /**
                     * @description The exact address, which the tenant may read now.
                     * @example hello@inbox.localhost
                     */
                    address: string;
                    /**
                     * @default 600
                     * @example 600
                     */
                    expires_in_seconds?: number | null;
                    /**
                     * @description As of other tokens; the address without it.
                     * @example continuous integration
                     */
                    name?: string | null;
                };
            };
        };
        responses: {
            /** @description The token. This is the only time that it is shown. */
            201: {
                headers: {
                    /** @description What remains of the limit (draft-ietf-httpapi-ratelimit-headers). */
                    RateLimit: string;
                    /** @description The limit. */
                    "RateLimit-Policy": string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CreatedLiveToken"];
                };
            };
            400: components["responses"]["v1_invalid_request"];
            /** @description `authentication_required`, `invalid_token` */
            401: {
                headers: {
                    /** @description The credential to present. */
                    "WWW-Authenticate": string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /**
                         * @description The published code.
                         * @enum {string}
                         */
                        error: "authentication_required" | "invalid_token";
                    };
                };
            };
            /** @description `account_disabled`, `token_limit_reached` */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /**
                         * @description The published code.
                         * @enum {string}
                         */
                        error: "account_disabled" | "token_limit_reached";
                    };
                };
            };
            404: components["responses"]["v1_not_found"];
            408: components["responses"]["v1_request_timeout"];
            413: components["responses"]["v1_payload_too_large"];
            415: components["responses"]["v1_unsupported_media_type"];
            421: components["responses"]["v1_misdirected_request"];
            429: components["responses"]["v1_rate_limit_exceeded"];
            440: components["responses"]["v1_session_expired"];
            500: components["responses"]["v1_internal_error"];
            503: components["responses"]["v1_unavailable"];
        };
    };
    revokeLiveToken: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Id of the token. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The token is revoked; its open waits and streams end within 5 s. */
            204: {
                headers: {
                    /** @description What remains of the limit (draft-ietf-httpapi-ratelimit-headers). */
                    RateLimit: string;
                    /** @description The limit. */
                    "RateLimit-Policy": string;
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["v1_invalid_request"];
            /** @description `authentication_required`, `invalid_token` */
            401: {
                headers: {
                    /** @description The credential to present. */
                    "WWW-Authenticate": string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /**
                         * @description The published code.
                         * @enum {string}
                         */
                        error: "authentication_required" | "invalid_token";
                    };
                };
            };
            403: components["responses"]["v1_account_disabled"];
            404: components["responses"]["v1_not_found"];
            409: components["responses"]["v1_managed_by_kubernetes"];
            413: components["responses"]["v1_payload_too_large"];
            415: components["responses"]["v1_unsupported_media_type"];
            421: components["responses"]["v1_misdirected_request"];
            429: components["responses"]["v1_rate_limit_exceeded"];
            440: components["responses"]["v1_session_expired"];
            500: components["responses"]["v1_internal_error"];
            503: components["responses"]["v1_unavailable"];
        };
    };
    waitForEmail: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @description The exact address, as in `/v1/inbox/{address}`. */
                    address?: string | null;
                    /**
                     * Format: date-time
                     * @description Only mail that was accepted after this time, to the millisecond.
                     */
                    after?: string | null;
                    /** @description Everything that the tenant owns, as `/v1/me`. */
                    all?: boolean | null;
                    /** @description A verified custom domain of the tenant. */
                    domain?: string | null;
                    /**
                     * @description Whether `email` is the whole message, as in `GET /v1/email/{id}`.
                     * @default false
                     */
                    full?: boolean | null;
                    /** @description What the mail must have, all of it. */
                    match?: {
                        /** @description Part of the From header, ignoring case. */
                        from?: string | null;
                        /** @description What it has, all of it: a one-time code, an action link, an element of `attachments`. One alone may be given without the list. */
                        has?: components["schemas"]["EmailFeature"][] | null;
                        /** @description Part of the subject, ignoring case. */
                        subject?: string | null;
                        /** @description Part of the first 256 KiB of its text, or of its HTML as it is shown; white space counts as one space, ignoring case. */
                        text?: string | null;
                        /** @description Part of the recipient's address, ignoring case. */
                        to?: string | null;
                    } | null;
                    /** @description Cursor: only mail after it. `0`: all unexpired mail, the oldest first. */
                    since?: string | null;
                    /**
                     * @description Seconds to wait at most; 0 looks once and never waits.
                     * @default 60
                     */
                    timeout?: number | null;
                };
            };
        };
        responses: {
            /** @description The mail. */
            200: {
                headers: {
                    /** @description What remains of the limit (draft-ietf-httpapi-ratelimit-headers). */
                    RateLimit: string;
                    /** @description The limit. */
                    "RateLimit-Policy": string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["FoundEmail"];
                };
            };
            /** @description No mail that matches within `timeout`: send the request again, with the cursor as `since`. */
            204: {
                headers: {
                    /** @description What remains of the limit (draft-ietf-httpapi-ratelimit-headers). */
                    RateLimit: string;
                    /** @description The limit. */
                    "RateLimit-Policy": string;
                    /** @description The cursor to continue from. */
                    "X-Next-Since": string;
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["v1_invalid_request"];
            /** @description `authentication_required`, `invalid_token` */
            401: {
                headers: {
                    /** @description The credential to present. */
                    "WWW-Authenticate": string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /**
                         * @description The published code.
                         * @enum {string}
                         */
                        error: "authentication_required" | "invalid_token";
                    };
                };
            };
            403: components["responses"]["v1_account_disabled"];
            404: components["responses"]["v1_not_found"];
            408: components["responses"]["v1_request_timeout"];
            413: components["responses"]["v1_payload_too_large"];
            415: components["responses"]["v1_unsupported_media_type"];
            421: components["responses"]["v1_misdirected_request"];
            /** @description `addr_busy`, `rate_limit_exceeded`, `token_busy` */
            429: {
                headers: {
                    /** @description What remains of the limit (draft-ietf-httpapi-ratelimit-headers). */
                    RateLimit: string;
                    /** @description The limit. */
                    "RateLimit-Policy": string;
                    /** @description Seconds. */
                    "Retry-After": number;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /**
                         * @description The published code.
                         * @enum {string}
                         */
                        error: "addr_busy" | "rate_limit_exceeded" | "token_busy";
                    };
                };
            };
            440: components["responses"]["v1_session_expired"];
            500: components["responses"]["v1_internal_error"];
            503: components["responses"]["v1_unavailable"];
        };
    };
}
