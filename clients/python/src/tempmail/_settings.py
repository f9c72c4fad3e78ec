"""What both clients are made with."""

from __future__ import annotations

import ipaddress
import os
import re
import secrets
import time
from datetime import datetime
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ._exchange import Answer, Connection, Request, Steps, json_of
from ._inbox import MintedToken, Team
from ._wait import Match, Scope, Wait
from .errors import TempmailError
from .models import Mail

if TYPE_CHECKING:
    from . import _wire

CONFIG_AGE = 60.0
"""For how long the public configuration is kept, in seconds, as the server allows."""
ALPHABET = "abcdefghijkmnpqrstuvwxyz23456789"


def direct_mounts(url: str) -> dict[str, None]:
    """Mounts of httpx by which loopback is reached directly; other hosts are, by the proxy of the environment."""
    host = urlsplit(url).hostname or ""
    try:
        is_loopback = ipaddress.ip_address(host).is_loopback
    except ValueError:
        is_loopback = host == "localhost" or host.endswith(".localhost")
    return {f"all://{f'[{host}]' if ':' in host else host}": None} if is_loopback else {}


class ClientState:
    """URL, token and defaults of a client, from its arguments or the environment."""

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        domain: str | None = None,
        timeout: float = 60.0,
        retry_for: float = 30.0,
    ) -> None:
        url = (url or os.environ.get("TEMPMAIL_CLIENT_URL") or "http://127.0.0.1:8080").rstrip("/")
        token = token or os.environ.get("TEMPMAIL_CLIENT_TOKEN")
        if not re.match(r"https?://.", url):
            advice = "Set TEMPMAIL_CLIENT_URL or the argument url to the address of the server."
            raise TempmailError("invalid_option", None, f"{url} is no http or https URL.", advice)
        if not token:
            advice = "Set TEMPMAIL_CLIENT_TOKEN or the argument token to a live token (tm_live_…)."
            raise TempmailError("authentication_required", None, "There is no token.", advice)
        self._team = Team(Connection(url, retry_for), token, timeout)
        self._domain = domain
        self._known_domain: tuple[str, float] | None = None

    @property
    def url(self) -> str:
        """Base URL of the server."""
        return self._team.connection.url

    def _mint(self, address: str | None, name: str, domain: str | None) -> Steps[MintedToken]:
        if address is None:
            domain = domain or self._domain or (yield from self._system_domain())
            # 80 bits: nobody guesses it, and no two tests have the same.
            address = f"{name}-{''.join(secrets.choice(ALPHABET) for _ in range(16))}@{domain}"
        return (yield from self._team.mint(address))

    def _wait(
        self,
        match: Match,
        address: str | None,
        domain: str | None,
        since: str | None,
        after: datetime | None,
        timeout: float | None,
    ) -> Steps[Mail]:
        if address is not None and domain is not None:
            advice = "Give one of them, or neither for all that the tenant owns."
            raise TempmailError("invalid_option", None, "A wait is for an address or a domain.", advice)
        if after is not None and after.tzinfo is None:
            advice = "Use a datetime with a time zone, as datetime.now(timezone.utc)."
            raise TempmailError("invalid_option", None, "after has no time zone.", advice)

        def send(request: Request) -> Steps[Answer]:
            return self._team.connection.send(self._team.token, request)

        wait = Wait(
            send=send,
            scope=Scope(address, domain),
            match=match,
            timeout=self._team.timeout if timeout is None else timeout,
            since=since,
            after=None if after is None else after.isoformat(),
        )
        return (yield from wait.run())

    def _system_domain(self) -> Steps[str]:
        if self._known_domain is not None and time.monotonic() - self._known_domain[1] < CONFIG_AGE:
            return self._known_domain[0]
        answer = yield from self._team.connection.send(self._team.token, Request("GET", "/v1/config"))
        config: _wire.ServerConfig = json_of(answer, "GET /v1/config")
        if not config["system_domains"]:
            advice = "Set the argument domain to a verified domain of your tenant."
            raise TempmailError("invalid_option", None, "The server has no system domain.", advice)
        domain = max(config["system_domains"], key=lambda candidate: candidate["default"])["domain"]
        self._known_domain = (domain, time.monotonic())
        return domain
