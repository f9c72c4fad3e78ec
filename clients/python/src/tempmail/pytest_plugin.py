"""Fixtures for pytest, which are there once the package is installed.

To set options, define a fixture ``tempmail`` of your own in ``conftest.py``:

    @pytest.fixture(scope="session")
    def tempmail():
        with Tempmail(timeout=120) as client:
            yield client
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ._awaited import AsyncInbox, AsyncTempmail
from ._blocking import Inbox, Tempmail


@pytest.fixture(scope="session")
def tempmail() -> Iterator[Tempmail]:
    """A client for the whole run, set up by TEMPMAIL_CLIENT_URL and TEMPMAIL_CLIENT_TOKEN."""
    with Tempmail() as client:
        yield client


@pytest.fixture
def inbox(tempmail: Tempmail) -> Iterator[Inbox]:
    """A fresh address, made for this test."""
    with tempmail.inbox() as inbox:
        yield inbox


@pytest.fixture
def async_inbox(tempmail: Tempmail) -> Iterator[AsyncInbox]:
    """A fresh address, made for this test, whose calls are awaited: with any plugin for asynchronous tests."""
    team = tempmail._team
    client = AsyncTempmail(tempmail.url, team.token, timeout=team.timeout, retry_for=team.connection.retry_for)
    inbox = AsyncInbox(client, team, tempmail._run(tempmail._mint(None, "test", None)))
    yield inbox
    # The event loop of the test is over.
    tempmail._run(inbox._close())
