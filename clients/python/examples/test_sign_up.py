import os

import httpx

from tempmail import Inbox

SITE = os.environ.get("SITE_URL", "http://localhost:3000")


def test_confirms_the_address_with_the_code(inbox: Inbox) -> None:
    httpx.post(f"{SITE}/api/sign-up", json={"email": inbox.address})

    mail = inbox.wait(subject="Confirm your address")
    answer = httpx.post(f"{SITE}/api/confirm", json={"email": inbox.address, "code": mail.code})
    assert answer.status_code == 200


def test_confirms_the_address_with_the_link(inbox: Inbox) -> None:
    httpx.post(f"{SITE}/api/sign-up", json={"email": inbox.address})

    assert "Welcome!" in httpx.get(inbox.link()).text
