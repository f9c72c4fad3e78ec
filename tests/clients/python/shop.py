"""The site of `tests/clients/stack`, as the tests use it."""

from __future__ import annotations

import os

import httpx

URL = os.environ["SITE_URL"]
TEAM_TOKEN = os.environ["TEMPMAIL_CLIENT_TOKEN"]


# A client of its own for each request would read the certificates of the system each time.
CLIENT = httpx.Client(base_url=URL, timeout=300)


def faulty(fault: str) -> str:
    """The URL of a base with a fault in `tests/clients/stack/faults.mjs`."""
    return f"{os.environ['FAULTS_URL']}/{fault}"


def sign_up(email: str) -> None:
    """Sign up, so that a mail with a code and a link is sent."""
    CLIENT.post("/api/sign-up", json={"email": email}).raise_for_status()


def confirms(email: str, code: str) -> bool:
    """Whether the code is that of the last mail to the address."""
    return CLIENT.post("/api/confirm", json={"email": email, "code": code}).is_success


def send(to: str, subject: str, text: str = "Hello.", headers: str = "") -> None:
    """Send a mail."""
    data = f"From: Ada <ada@example.org>\nTo: <{to}>\nSubject: {subject}\n{headers}\n{text}\n"
    CLIENT.post("/send", params={"to": to}, content=data.encode()).raise_for_status()


def restart(signal: str) -> None:
    """Restart the server."""
    CLIENT.post("/restart", params={"signal": signal}).raise_for_status()
