"""The waiting: one call after the other, each from where the last one ended."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict, cast
from urllib.parse import quote, urlencode

from ._exchange import Answer, Pause, Request, Steps, json_of
from .errors import TempmailError, WaitTimeoutError, quoted
from .models import Has, Mail, Summary, mail_of, summary_of

if sys.version_info >= (3, 11):
    from typing import Self, Unpack
else:
    from typing_extensions import Self, Unpack

if TYPE_CHECKING:
    from . import _wire

__all__ = ["Match", "MatchOptions", "Scope", "Self", "Unpack", "Wait", "list_mails"]

LONGEST_REQUEST = 50.0
"""The longest that one request waits, in seconds: below the 60 s at which proxies cut idle connections."""
PAGE, PAGES = 50, 20
"""Mails of one list, and lists that are asked for."""
LAST_LOOKS = 10
"""Further looks after the timeout, if the last one ended at a bound of the server and not at the newest mail."""


class MatchOptions(TypedDict, total=False):
    """What a mail must have: texts are looked for without regard to case, and all that is set must hold."""

    from_: str
    """In the From header."""
    to: str
    """In the address of the recipient."""
    subject: str
    """In the subject."""
    text: str
    """In the text as it is shown."""
    has: Has | Sequence[Has]
    """What the mail must have."""


@dataclass(frozen=True)
class Match:
    """What a mail must have; None asks for nothing."""

    from_: str | None = None
    to: str | None = None
    subject: str | None = None
    text: str | None = None
    has: Has | Sequence[Has] | None = None

    def also_has(self, what: Has) -> Match:
        """The same, and a code or a link."""
        others = [other for other in self._has() if other != what]
        return Match(self.from_, self.to, self.subject, self.text, [*others, what])

    def wire(self) -> dict[str, object]:
        """As the server takes it; empty where every mail matches."""
        return self._texts() | ({"has": self._has()} if self._has() else {})

    def __str__(self) -> str:
        places = {"from": "From", "to": "its address", "subject": "its subject", "text": "its text"}
        texts = [f"{quoted(text)} in {places[name]}" for name, text in self._texts().items()]
        has = [f"{'an' if what == 'attachment' else 'a'} {what}" for what in self._has()]
        return ", ".join(texts + has)

    def _texts(self) -> dict[str, str]:
        texts = {"from": self.from_, "to": self.to, "subject": self.subject, "text": self.text}
        return {name: text for name, text in texts.items() if text is not None}

    def _has(self) -> list[Has]:
        if self.has is None:
            return []
        return [self.has] if isinstance(self.has, str) else list(self.has)


@dataclass(frozen=True)
class Scope:
    """Where to wait: an address, a verified domain of the tenant, or all that it owns."""

    address: str | None = None
    domain: str | None = None

    def wire(self) -> dict[str, object]:
        """As the server takes it."""
        if self.address is not None:
            return {"address": self.address}
        return {"all": True} if self.domain is None else {"domain": self.domain}

    def path(self) -> str:
        """Path of its list."""
        if self.address is not None:
            return f"/v1/inbox/{quote(self.address, safe='')}"
        return "/v1/me" if self.domain is None else f"/v1/domain/{quote(self.domain, safe='')}"

    def __str__(self) -> str:
        return f"to {self.address or self.domain or 'any address of the tenant'}"


Send = Callable[[Request], Steps[Answer]]
"""Sends a request with the token of a scope."""
Accepts = Callable[["_wire.FoundEmail", "str | None", bool], bool]
"""Whether a mail is wanted; one that is not is skipped.

The second argument is the cursor that was asked with. The third is true where every mail matches, so that none between
the cursor and this one was left out.
"""


@dataclass(frozen=True)
class Wait:
    """A wait in a scope, for ``timeout`` seconds."""

    send: Send
    scope: Scope
    match: Match
    timeout: float
    since: str | None = None
    """Only mail after this cursor."""
    start: str | None = None
    """What is listed at the timeout came after this cursor; without it after ``since``."""
    after: str | None = None
    """Only mail after this time, RFC 3339."""
    accepts: Accepts = lambda answer, since, is_next: True

    def run(self) -> Steps[Mail]:
        """Wait for the next mail that matches; raises WaitTimeoutError where none came in time."""
        if not self.timeout >= 0:
            problem = f"A timeout of {self.timeout} s is none."
            raise TempmailError("invalid_option", None, problem, "Use seconds, 0 or more.")
        deadline = time.monotonic() + self.timeout
        since, looks = self.since, 0
        while True:
            asked = time.monotonic()
            answer = yield from self.send(self._request(since, deadline))
            if answer.status == 200:
                found: _wire.FoundEmail = json_of(answer, "POST /v1/wait")
                if self.accepts(found, since, not self.match.wire()):
                    return mail_of(found, cast("_wire.Email", found["email"]))
                since = found["next_since"]
                continue
            reached = answer.headers.get("x-next-since", since)
            if time.monotonic() >= deadline:
                looks += 1
                if reached == since or looks >= LAST_LOOKS:
                    break
            elif time.monotonic() - asked < 0.25:
                # A server that ends waits early, as one that is shut down, is not asked without a pause.
                yield Pause(0.25)
            since = reached
        raise WaitTimeoutError(self._asked(), self.timeout, (yield from self._arrived()))

    def _request(self, since: str | None, deadline: float) -> Request:
        def time_left() -> float:
            return min(LONGEST_REQUEST, max(0.0, deadline - time.monotonic()))

        def body() -> Mapping[str, object]:
            options = {"since": since, "after": self.after, "match": self.match.wire() or None}
            given = {name: value for name, value in options.items() if value is not None}
            return {**self.scope.wire(), **given, "timeout": math.ceil(time_left()), "full": True}

        return Request("POST", "/v1/wait", body=body, waits=time_left(), until=deadline)

    def _asked(self) -> str:
        conditions = str(self.match)
        return f"mail {self.scope}" + (f" with {conditions}" if conditions else "")

    def _arrived(self) -> Steps[list[Summary] | None]:
        try:
            mails = yield from list_mails(self.send, self.scope, self.start or self.since)
        except TempmailError:
            return None
        return mails[:PAGE]


def list_mails(send: Send, scope: Scope, since: str | None) -> Steps[list[Summary]]:
    """List the mails after a cursor, oldest first, at most 1,000; without one, the newest 50."""
    mails: list[Summary] = []
    for _ in range(PAGES):
        query = {"limit": str(PAGE)} | ({} if since is None else {"since": since})
        answer = yield from send(Request("GET", f"{scope.path()}?{urlencode(query)}", headers={"prefer": "wait=0"}))
        if answer.status != 200:
            break
        page: _wire.NewEmails = json_of(answer, f"GET {scope.path()}")
        mails += [summary_of(email) for email in reversed(page["emails"])]
        if since is None:
            break
        since = page["next_since"]
    return mails
