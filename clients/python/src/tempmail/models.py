"""Mails, codes and links, as dataclasses; their fields are those of the server (``docs/api.md``)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from .errors import TempmailError, quoted

if TYPE_CHECKING:
    from . import _wire

Has = Literal["code", "link", "attachment"]
"""What a mail may have to have."""


@dataclass(frozen=True)
class Code:
    """A one-time code, with where it was found and why it is taken for one."""

    code: str
    confidence: float
    source: str
    reason: str


@dataclass(frozen=True)
class Link:
    """An action link: what the reader of the mail is asked to open."""

    url: str
    kind: str
    text: str
    host: str
    host_matches_from: bool
    confidence: float
    source: str
    reason: str


@dataclass(frozen=True)
class Attachment:
    """An attachment, without its data."""

    index: int
    filename: str | None
    content_type: str
    size: int
    content_id: str | None
    inline: bool


@dataclass(frozen=True)
class Summary:
    """A mail in a list."""

    id: str
    address: str
    from_email: str
    subject: str
    preview_text: str
    size: int
    created_at: datetime


@dataclass(frozen=True)
class Mail:
    """A mail, with its codes and links.

    ``from_`` is the From header as text and ``from_email`` the first address in it. ``text`` and ``html`` are empty where
    the mail has no such part; ``shown_text`` is what a reader sees of either.
    """

    id: str
    address: str
    sender: str
    from_: str
    from_email: str
    to: tuple[str, ...]
    subject: str
    preview_text: str
    text: str
    html: str
    shown_text: str
    headers: tuple[tuple[str, str], ...]
    attachments: tuple[Attachment, ...]
    size: int
    created_at: datetime
    expires_at: datetime
    codes: tuple[Code, ...]
    """One-time codes, best first."""
    links: tuple[Link, ...]
    """Action links, best first."""

    @property
    def code(self) -> str:
        """The best code; raises TempmailError with code ``no_code`` where the mail has none."""
        if self.codes:
            return self.codes[0].code
        raise self._lacks("code")

    @property
    def link(self) -> str:
        """URL of the best link; raises TempmailError with code ``no_link`` where the mail has none."""
        if self.links:
            return self.links[0].url
        raise self._lacks("link")

    def _lacks(self, what: str) -> TempmailError:
        problem = f"The mail {quoted(self.subject)} from {quoted(self.from_email)} has no {what}."
        return TempmailError(f"no_{what}", None, problem, f'Wait for one that has: has="{what}", or read `text`.')


def mail_of(answer: _wire.FoundEmail, email: _wire.Email) -> Mail:
    """The mail of an answer."""
    return Mail(
        id=email["id"],
        address=email["address"],
        sender=email["sender"],
        from_=email["from"],
        from_email=email["from_email"],
        to=tuple(email["to"]),
        subject=email["subject"],
        preview_text=email["preview_text"],
        text=email["text"],
        html=email["html"],
        shown_text=email["shown_text"],
        headers=tuple((field["name"], field["value"]) for field in email["headers"]),
        attachments=tuple(_attachment_of(attachment) for attachment in email["attachments"]),
        size=email["size"],
        created_at=_time_of(email["created_at"]),
        expires_at=_time_of(email["expires_at"]),
        codes=tuple(_code_of(code) for code in answer["codes"]),
        links=tuple(_link_of(link) for link in answer["links"]),
    )


def summary_of(email: _wire.EmailSummary) -> Summary:
    """A mail of a list."""
    return Summary(
        id=email["id"],
        address=email["address"],
        from_email=email["from_email"],
        subject=email["subject"],
        preview_text=email["preview_text"],
        size=email["size"],
        created_at=_time_of(email["created_at"]),
    )


def _attachment_of(attachment: _wire.AttachmentElement) -> Attachment:
    return Attachment(
        index=attachment["index"],
        filename=attachment["filename"],
        content_type=attachment["content_type"],
        size=attachment["size"],
        content_id=attachment["content_id"],
        inline=attachment["inline"],
    )


def _code_of(code: _wire.CodeElement) -> Code:
    return Code(code["code"], code["confidence"], code["source"], code["reason"])


def _link_of(link: _wire.LinkElement) -> Link:
    return Link(
        url=link["url"],
        kind=link["kind"],
        text=link["text"],
        host=link["host"],
        host_matches_from=link["host_matches_from"],
        confidence=link["confidence"],
        source=link["source"],
        reason=link["reason"],
    )


def _time_of(text: str) -> datetime:
    # Before Python 3.11 `fromisoformat` does not know Z.
    return datetime.fromisoformat(text.replace("Z", "+00:00"))
