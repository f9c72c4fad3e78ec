"""The client whose calls are awaited, by asyncio or trio."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from datetime import datetime
from types import TracebackType
from typing import TypeVar

import anyio
import httpx

from ._blocking import interrupted_by
from ._exchange import Answer, Attempt, Pause, Steps
from ._inbox import InboxState, MintedToken, Team
from ._settings import ClientState, direct_mounts
from ._wait import Match, MatchOptions, Self, Unpack
from .models import Mail, Summary

T = TypeVar("T")


class AsyncTempmail(ClientState):
    """A client of tempmail. Tasks may share it, and event loops: no connection is kept open between two requests.

    ``url`` and ``token`` (a live token of the team) come from TEMPMAIL_CLIENT_URL and TEMPMAIL_CLIENT_TOKEN unless given;
    without either the URL is that of ``tempmail up`` on this machine. ``domain`` is that of new addresses, else the
    default system domain of the server. ``timeout`` is that of a wait that names none, in seconds. ``retry_for`` says for
    how long a request is repeated that failed for a moment (no connection, 429, 503), in seconds; a wait repeats them
    until its timeout if that is longer, and a server that never answered is tried for 3 s only.
    """

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        domain: str | None = None,
        timeout: float = 60.0,
        retry_for: float = 30.0,
    ) -> None:
        super().__init__(url, token, domain=domain, timeout=timeout, retry_for=retry_for)
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=0)
        self._client = httpx.AsyncClient(limits=limits, mounts=direct_mounts(self.url))

    async def inbox(self, address: str | None = None, *, name: str = "test", domain: str | None = None) -> AsyncInbox:
        """Make an inbox: a fresh address, and a token that can wait and read there only. It sees new mail only.

        ``name`` is the begin of its local part. With ``address`` it is an address of your own.
        """
        created = await self._run(self._mint(address, name, domain))
        return AsyncInbox(self, self._team, created)

    async def wait(
        self,
        *,
        address: str | None = None,
        domain: str | None = None,
        since: str | None = None,
        after: datetime | None = None,
        timeout: float | None = None,
        **match: Unpack[MatchOptions],
    ) -> Mail:
        """Wait with the token of the team, which can have one wait open.

        For an address, a verified domain of the tenant, or without either all that it owns; the last two need a cursor
        ``since`` or a time ``after``. Parallel tests wait on an ``inbox()`` each instead.
        """
        return await self._run(self._wait(Match(**match), address, domain, since, after, timeout))

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def _run(self, steps: Steps[T]) -> T:
        """Do what the steps ask for."""
        with closing(steps):
            try:
                step = next(steps)
                while True:
                    if isinstance(step, Pause):
                        await anyio.sleep(step.seconds)
                        step = steps.send(None)
                        continue
                    try:
                        answer = await self._send(step)
                    except httpx.RequestError as error:
                        step = steps.throw(interrupted_by(error))
                    else:
                        step = steps.send(answer)
            except StopIteration as stop:
                result: T = stop.value
                return result

    async def _send(self, attempt: Attempt) -> Answer:
        async with self._client.stream(
            attempt.method,
            self.url + attempt.path,
            headers=attempt.headers,
            content=attempt.content,
            timeout=attempt.timeout,
        ) as response:
            try:
                content = await response.aread()
            except httpx.RequestError:
                # The status of an error says enough.
                if response.is_success:
                    raise
                content = b""
            return Answer(response.status_code, response.headers, content)


class AsyncInbox(InboxState):
    """An address, from the moment at which the inbox was made: earlier mail is never seen.

    Waits of one inbox may run in parallel. Each mail is handed out once.
    """

    def __init__(self, client: AsyncTempmail, team: Team, created: MintedToken) -> None:
        super().__init__(team, created)
        self._client = client

    async def wait(self, *, timeout: float | None = None, **match: Unpack[MatchOptions]) -> Mail:
        """Wait for a mail that matches, the oldest first; raises WaitTimeoutError where none comes in time.

        ``timeout`` is in seconds, of any length; 0 looks once.
        """
        return await self._client._run(self._wait(Match(**match), timeout))

    async def code(self, *, timeout: float | None = None, **match: Unpack[MatchOptions]) -> str:
        """Wait for a mail with a code, and return the code."""
        return (await self._client._run(self._wait(Match(**match).also_has("code"), timeout))).code

    async def link(self, *, timeout: float | None = None, **match: Unpack[MatchOptions]) -> str:
        """Wait for a mail with an action link, and return its URL."""
        return (await self._client._run(self._wait(Match(**match).also_has("link"), timeout))).link

    async def list(self) -> Sequence[Summary]:
        """All mail since the inbox was made, oldest first, at most 1,000."""
        return await self._client._run(self._list())

    async def raw(self, mail: Mail | Summary) -> bytes:
        """The mail as it was received (``message/rfc822``)."""
        return await self._client._run(self._fetch(mail, "raw"))

    async def attachment(self, mail: Mail | Summary, index: int) -> bytes:
        """The data of an attachment, by its ``index``."""
        return await self._client._run(self._fetch(mail, f"attachments/{index}"))

    async def delete(self, mail: Mail | Summary) -> None:
        """Delete a mail."""
        await self._client._run(self._delete(mail))

    async def close(self) -> None:
        """Revoke the tokens of the inbox, which end by themselves otherwise: a tenant has 200 at a time. Mail stays."""
        await self._client._run(self._close())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()
