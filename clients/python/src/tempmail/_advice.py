"""What to do about each code of the server (``docs/api.md``), and where something else answered."""

ADVICE = {
    "account_disabled": "The tenant is suspended: ask who runs the server.",
    "addr_busy": "Ten waits of this tenant are open on the address: end some, or use an address for each test.",
    "authentication_required": "Set TEMPMAIL_CLIENT_TOKEN or the option token to a live token (tm_live_…).",
    "email_expired": "The mail expired: read it sooner, or give the tenant a longer retention.",
    "internal_error": "The server failed: look at its log.",
    "invalid_request": (
        "Check the options: an address needs a domain, texts to match have at most 256 characters, and a "
        "cursor is of the same tenant."
    ),
    "invalid_token": (
        "The token is not a live token of this server, or was revoked: create one, and check TEMPMAIL_CLIENT_URL."
    ),
    "managed_by_kubernetes": "A resource of Kubernetes declares it: change that.",
    "misdirected_request": (
        "The server does not know this host name: use its own base URL, or add the name to http.hosts."
    ),
    "not_found": (
        "It does not exist, or this tenant may not read it: check that the server receives mail for the "
        "domain, and whose the address is."
    ),
    "payload_too_large": "Send less than 64 KiB.",
    "rate_limit_exceeded": "Send fewer requests: make fewer addresses at a time.",
    "request_timeout": "The request did not arrive in time: check the network.",
    "session_expired": "The token expired: create another one.",
    "token_busy": "Another wait of this token is open: wait on inboxes, each of which has a token of its own.",
    "token_limit_reached": "Too many tokens: close inboxes that are not needed any more, or let them end sooner.",
    "unavailable": "The server or its database restarts: try again.",
    "unexpected_answer": "Check TEMPMAIL_CLIENT_URL: something else may answer there.",
    "unsupported_media_type": "A proxy changed the request: check what is between this client and the server.",
}


def advice_for(code: str) -> str:
    """What to do about a code; servers to come may have others."""
    return ADVICE.get(code, "The server's documentation, at /docs, says more.")
