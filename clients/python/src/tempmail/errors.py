"""Errors: each has a code for programs, the HTTP status, and what to do."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ._advice import advice_for

if TYPE_CHECKING:
    from .models import Summary


class TempmailError(Exception):
    """What every error of this package has.

    ``code`` is a word for programs: a code of the server (``docs/api.md``), or one of ``unreachable``,
    ``wait_timeout``, ``no_code``, ``no_link``, ``closed``, ``invalid_option``, ``unexpected_answer``. ``status`` is that
    of the HTTP answer, None where there was none. ``advice`` says what to do.
    """

    def __init__(self, code: str, status: int | None, problem: str, advice: str) -> None:
        super().__init__(f"{problem} {advice}")
        self.code = code
        self.status = status
        self.advice = advice


class ApiError(TempmailError):
    """The server refused a request; ``request`` is its method and path."""

    def __init__(self, status: int, code: str, request: str) -> None:
        super().__init__(code, status, f"{request} was answered by {status} {code}.", advice_for(code))
        self.request = request


class UnreachableError(TempmailError):
    """No answer came from the server, although the request was repeated."""

    def __init__(self, url: str, reason: str) -> None:
        advice = "Check that tempmail runs there, and TEMPMAIL_CLIENT_URL."
        super().__init__("unreachable", None, f"No answer from {url}: {reason}.", advice)


class WaitTimeoutError(TempmailError):
    """No mail that matches came in time.

    ``timeout`` is in seconds. ``arrived`` is what came instead, oldest first, up to 50; None where it could not be
    listed.
    """

    def __init__(self, asked: str, timeout: float, arrived: Sequence[Summary] | None) -> None:
        super().__init__("wait_timeout", None, f"No {asked} came within {timeout:g} s.", _instead(arrived))
        self.timeout = timeout
        self.arrived = arrived


def _instead(arrived: Sequence[Summary] | None) -> str:
    """Say what came instead, and what to do."""
    if arrived is None:
        return "Check that the application sent it, and to this address."
    if not arrived:
        return "No other mail came either. Check that the application sends to this address, by the SMTP server of tempmail."
    lines = [
        f"  {mail.created_at:%Y-%m-%dT%H:%M:%SZ} {quoted(mail.subject)} from {quoted(mail.from_email)}"
        f" to {quoted(mail.address)}"
        for mail in arrived
    ]
    return "\n".join(["This came instead; compare it with what was asked for:", *lines])


def quoted(text: str) -> str:
    """Text of a mail on one line, with control and format characters made visible."""
    hidden = {"Cc", "Cf", "Zl", "Zp"}
    return '"' + "".join(f"\\u{{{ord(c):x}}}" if unicodedata.category(c) in hidden else c for c in text) + '"'
