"""Requests, repeated where they fail for a moment, without I/O: generators that ask a driver for what they need.

The clients drive them, one by blocking calls and one by awaiting, so what is decided is written once.
"""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from datetime import timezone
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar
from urllib.parse import urlsplit

from .errors import ApiError, UnreachableError

FIRST_CONTACT = 3.0
"""For how long a server is tried that never answered, in seconds: it may not run at all."""
ANSWER_TIME = 15.0
"""Time for a request that does not wait, and what a wait gets beyond its own time, in seconds."""
SHORTEST_PAUSE, LONGEST_PAUSE = 0.1, 2.0
"""The pauses between attempts grow from the first to the second, in seconds."""
PASSING = frozenset({408, 429, 502, 503, 504})
"""Statuses of a moment: the request was not carried out, or its answer got lost, and it is sent again."""
UNEXPECTED = "unexpected_answer"
"""The code of an answer that is not of the server, but of something before it."""


@dataclass(frozen=True)
class Attempt:
    """Asks the driver to send a request once."""

    method: str
    path: str
    headers: Mapping[str, str]
    content: bytes | None
    timeout: float


@dataclass(frozen=True)
class Pause:
    """Asks the driver to wait, in seconds."""

    seconds: float


@dataclass(frozen=True)
class Answer:
    """What the driver answers an attempt with. The names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    content: bytes


class Interrupted(Exception):  # noqa: N818, not an error for users
    """What the driver raises at an attempt that got no whole answer."""


T = TypeVar("T")
Steps = Generator[Attempt | Pause, Any, T]
"""A generator that yields attempts and pauses, is sent answers, and returns a result."""


@dataclass(frozen=True)
class Request:
    """A request to the server."""

    method: str
    path: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Callable[[], Mapping[str, object]] | None = None
    """Makes the JSON body, for each attempt, since a wait asks for the time that is left."""
    waits: float = 0.0
    """For how long the server may wait before it answers, in seconds."""
    until: float = 0.0
    """Until when failures of a moment are repeated, by `time.monotonic`, if that is later than `retry_for` says."""

    @property
    def name(self) -> str:
        """Method and path, without query."""
        return f"{self.method} {urlsplit(self.path).path}"


class Connection:
    """What is known of a server. ``retry_for`` is for how long failures of a moment are repeated, in seconds."""

    def __init__(self, url: str, retry_for: float) -> None:
        self.url = url
        self.retry_for = retry_for
        self.is_reached = False

    def send(self, token: str, request: Request) -> Steps[Answer]:
        """Send a request until it is answered; raises ApiError or UnreachableError."""
        start = time.monotonic()
        until = max(start + self.retry_for, request.until)
        pause = SHORTEST_PAUSE
        while True:
            began = time.monotonic()
            error: ApiError | UnreachableError
            delay = 0.0
            try:
                answer: Answer = yield self._attempt(token, request)
            except Interrupted as interrupted:
                error = UnreachableError(self.url, str(interrupted))
                error.__cause__ = interrupted.__cause__
            else:
                self.is_reached = True
                if 200 <= answer.status < 300:
                    return answer
                error = ApiError(answer.status, _code_of(answer), request.name)
                if not _is_passing(error):
                    raise error
                delay = _retry_after(answer)
            # A connection that was open for long was cut, and says nothing about the next one.
            if time.monotonic() - began > LONGEST_PAUSE:
                pause = SHORTEST_PAUSE
            delay = (1 + random.random()) * max(pause, delay)
            if time.monotonic() + delay > (until if self.is_reached else start + FIRST_CONTACT):
                raise error
            pause = min(2 * pause, LONGEST_PAUSE)
            yield Pause(delay)

    @staticmethod
    def _attempt(token: str, request: Request) -> Attempt:
        headers = {"x-api-token": token, **request.headers}
        content = None
        if request.body is not None:
            headers["content-type"] = "application/json"
            content = json.dumps(request.body()).encode()
        return Attempt(request.method, request.path, headers, content, request.waits + ANSWER_TIME)


def json_of(answer: Answer, request: str) -> Any:
    """The JSON of an answer; raises ApiError where something else answered than the server."""
    try:
        return json.loads(answer.content)
    except ValueError:
        raise ApiError(answer.status, UNEXPECTED, request) from None


def _code_of(answer: Answer) -> str:
    """The code of an error answer. Something before the server may answer anything: only what looks like a code is one."""
    try:
        code = json.loads(answer.content)["error"]
    except (ValueError, LookupError, TypeError):
        return UNEXPECTED
    return code if isinstance(code, str) and re.fullmatch("[a-z_]{1,64}", code) else UNEXPECTED


def _is_passing(error: ApiError) -> bool:
    """Whether the same request may succeed in a moment. Any 5xx from before the server is, such as the 522 of a CDN."""
    status = error.status or 0
    return status in PASSING or (status >= 500 and error.code == UNEXPECTED)


def _retry_after(answer: Answer) -> float:
    """``Retry-After`` in seconds (RFC 9110 10.2.3); 0 where there is none."""
    value = answer.headers.get("retry-after", "").strip()
    if re.fullmatch("[0-9]+", value):
        return float(value)
    try:
        date = parsedate_to_datetime(value)
    except (TypeError, ValueError):
        return 0.0
    # One of the forms of dates names no zone, and is UTC as well.
    return max(0.0, (date if date.tzinfo else date.replace(tzinfo=timezone.utc)).timestamp() - time.time())
