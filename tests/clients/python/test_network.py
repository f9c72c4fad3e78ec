from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from tempmail import Tempmail

from shop import TEAM_TOKEN, confirms, faulty, restart, send, sign_up


@pytest.mark.parametrize("fault", ["cut", "lost", "limited", "away", "cdn", "dated", "short"])
def test_misses_no_mail_and_hands_out_none_twice_behind_a_faulty_network(fault: str) -> None:
    subjects = ["one", "two", "three", "four"]
    with Tempmail(faulty(fault)) as tempmail, tempmail.inbox() as inbox, ThreadPoolExecutor() as pool:
        received = []
        for subject in subjects:
            wait = pool.submit(inbox.wait)
            # More than one connection is cut meanwhile, and more than one wait ends.
            time.sleep(1.5 if fault == "short" else 0.7)
            send(inbox.address, subject)
            received.append(wait.result().subject)
    assert received == subjects


@pytest.mark.parametrize("signal", ["SIGTERM", "SIGKILL"])
def test_goes_on_with_its_wait_after_a_restart(signal: str) -> None:
    with Tempmail() as tempmail, tempmail.inbox() as inbox, ThreadPoolExecutor() as pool:
        send(inbox.address, "Before")
        wait = pool.submit(inbox.wait, subject="Confirm")
        restart(signal)
        sign_up(inbox.address)
        assert confirms(inbox.address, wait.result().code)
        assert inbox.wait().subject == "Before"


def test_replaces_a_token_that_ends_while_it_waits() -> None:
    with Tempmail() as tempmail, tempmail.inbox() as inbox, ThreadPoolExecutor() as pool:
        wait = pool.submit(inbox.wait)
        revoked = f"{tempmail.url}/v1/tokens/{inbox._token_ids[0]}"
        assert httpx.delete(revoked, headers={"x-api-token": TEAM_TOKEN}).status_code == 204
        deadline = time.monotonic() + 60
        while len(inbox._token_ids) == 1 and time.monotonic() < deadline:
            time.sleep(0.05)
        send(inbox.address, "After")
        assert wait.result().subject == "After"
