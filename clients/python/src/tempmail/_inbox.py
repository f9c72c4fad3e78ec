"""What an inbox does, for both clients."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote

from ._exchange import Answer, Connection, Request, Steps, json_of
from ._wait import Match, Scope, Wait, list_mails
from .errors import ApiError, TempmailError
from .models import Mail, Summary

if TYPE_CHECKING:
    from . import _wire


@dataclass(frozen=True)
class MintedToken:
    """A token for one address, and the cursor of the moment at which it was minted."""

    id: str
    token: str
    address: str
    since: str


@dataclass(frozen=True)
class Team:
    """A connection, the token of the team, and the timeout of a wait that names none, in seconds."""

    connection: Connection
    token: str
    timeout: float

    def mint(self, address: str) -> Steps[MintedToken]:
        """Create a token for one address; it comes with the cursor of that moment."""

        def body() -> Mapping[str, object]:
            return {"address": address}

        answer = yield from self.connection.send(self.token, Request("POST", "/v1/tokens", body=body))
        created: _wire.CreatedLiveToken = json_of(answer, "POST /v1/tokens")
        minted_for, since = created["address"], created["since"]
        if minted_for is None or since is None:
            raise ApiError(answer.status, "unexpected_answer", "POST /v1/tokens")
        return MintedToken(created["id"], created["token"], minted_for, since)


class InboxState:
    """An address, its cursors and its tokens. Threads may share it."""

    def __init__(self, team: Team, created: MintedToken) -> None:
        self._team = team
        self._address = created.address
        self._since = created.since
        # All mail up to this cursor was handed out, and these ids.
        self._base = created.since
        self._handed_out: set[str] = set()
        self._lock = threading.Lock()
        # Tokens that no request uses: each can have one wait open.
        self._idle = [created.token]
        self._token_ids = [created.id]
        self._closed = False

    @property
    def address(self) -> str:
        """The address to sign up with."""
        return self._address

    @property
    def since(self) -> str:
        """The cursor of the moment at which the inbox was made."""
        return self._since

    def _wait(self, match: Match, timeout: float | None) -> Steps[Mail]:
        wait = Wait(
            send=self._send,
            scope=Scope(address=self.address),
            match=match,
            timeout=self._team.timeout if timeout is None else timeout,
            since=self._base,
            start=self.since,
            accepts=self._accept,
        )
        return (yield from wait.run())

    def _list(self) -> Steps[list[Summary]]:
        return (yield from list_mails(self._send, Scope(address=self.address), self.since))

    def _fetch(self, mail: Mail | Summary, path: str) -> Steps[bytes]:
        answer = yield from self._send(Request("GET", f"/v1/email/{quote(mail.id, safe='')}/{path}"))
        return answer.content

    def _delete(self, mail: Mail | Summary) -> Steps[None]:
        yield from self._send(Request("DELETE", f"/v1/email/{quote(mail.id, safe='')}"))

    def _close(self) -> Steps[None]:
        self._closed = True
        while self._token_ids:
            token_id = self._token_ids.pop()
            try:
                yield from self._team.connection.send(self._team.token, Request("DELETE", f"/v1/tokens/{token_id}"))
            except TempmailError:
                # It is left to its expiry.
                continue

    def _accept(self, answer: _wire.FoundEmail, since: str | None, is_next: bool) -> bool:
        """Decide whether a mail is handed out by the wait that found it, at once, since waits run in parallel."""
        with self._lock:
            mail_id = answer["email"]["id"]
            is_new = mail_id not in self._handed_out
            self._handed_out.add(mail_id)
            if is_next and since == self._base:
                self._base = answer["next_since"]
            return is_new

    def _send(self, request: Request) -> Steps[Answer]:
        """Send a request with a token that no other one uses, and with a new one where that has expired."""
        try:
            token = self._idle.pop()
        except IndexError:
            token = yield from self._mint()
        try:
            try:
                return (yield from self._team.connection.send(token, request))
            except ApiError as error:
                if error.status not in (401, 440):
                    raise
                token = yield from self._mint()
                return (yield from self._team.connection.send(token, request))
        finally:
            self._idle.append(token)

    def _mint(self) -> Steps[str]:
        if self._closed:
            raise TempmailError("closed", None, f"The inbox {self.address} is closed.", "Wait before it is closed.")
        created = yield from self._team.mint(self.address)
        self._token_ids.append(created.id)
        return created.token
