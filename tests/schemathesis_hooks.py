"""What Schemathesis has to know of tempmail beyond the document: which waits would hold for 25 s."""

import re
from urllib.parse import quote, unquote

import schemathesis

# What the test fills all the time: an inbox, and a mailbox.
FULL = "full@inbox.localhost"
OWNED = "owned@inbox.localhost"
SERVED = re.compile(r"[^\s@]+@inbox\.localhost")


@schemathesis.hook
def before_call(context, case, kwargs):
    operation = case.operation.definition.raw.get("operationId")
    address = unquote(str((case.path_parameters or {}).get("address"))).lower()
    if operation == "waitOnInbox":
        query = case.query or {}
        if query.get("from") or query.get("subject"):
            # Nothing would match what is made up: such a wait holds. Elsewhere it ends at once.
            case.path_parameters["address"] = quote("full@elsewhere.example")
        elif SERVED.fullmatch(address):
            case.path_parameters["address"] = quote(FULL)
    elif operation == "waitOnOwned":
        # What is owned has mail, so that a wait on all of it ends at once.
        case.query = {k: v for k, v in (case.query or {}).items() if k not in ("from", "subject")}
    elif operation == "clearInbox" and address in (FULL, OWNED):
        case.path_parameters["address"] = quote("other@inbox.localhost")


@schemathesis.deserializer("message/rfc822", "text/html", "text/plain")
def as_text(context, response):
    return response.content.decode("utf-8", "replace")
