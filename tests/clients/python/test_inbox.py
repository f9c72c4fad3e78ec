from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone

import httpx
import pytest
from tempmail import Inbox, Tempmail, TempmailError, WaitTimeoutError

from shop import confirms, send, sign_up


def test_hands_over_the_code_and_the_link_of_a_mail(tempmail: Tempmail) -> None:
    with tempmail.inbox(name="sign-up") as inbox:
        assert re.fullmatch(r"sign-up-[a-z2-9]{16}@inbox\.localhost", inbox.address)
        sign_up(inbox.address)
        mail = inbox.wait(subject="confirm YOUR", from_="shop.example", has=["code", "link"])
    assert confirms(inbox.address, mail.code)
    assert httpx.get(mail.link).is_success
    assert (mail.address, mail.from_email) == (inbox.address, "no-reply@shop.example")
    assert mail.code in mail.text
    assert mail.links[0].kind == "confirm"
    assert mail.created_at < mail.expires_at


def test_waits_for_a_code_or_for_a_link(inbox: Inbox) -> None:
    send(inbox.address, "Our offers")
    sign_up(inbox.address)
    sign_up(inbox.address)
    assert re.fullmatch(r"\d{6}", inbox.code())
    assert "/confirm?token=" in inbox.link(subject="Confirm")


def test_never_sees_mail_of_before(tempmail: Tempmail) -> None:
    address = "returns-to-python@inbox.localhost"
    for _ in range(3):
        send(address, "Old mail", "Your code is 111111")
        with tempmail.inbox(address) as inbox:
            with pytest.raises(WaitTimeoutError) as missed:
                inbox.wait(timeout=0)
            assert missed.value.arrived == []
            sign_up(address)
            assert confirms(address, inbox.code())


def test_hands_out_each_mail_once_also_those_that_a_condition_passed_over(inbox: Inbox) -> None:
    for subject in ["one", "two", "three", "four"]:
        send(inbox.address, subject)
    assert inbox.wait(subject="three").subject == "three"
    assert inbox.wait().subject == "one"
    assert inbox.wait(subject="o").subject == "two"
    assert inbox.wait().subject == "four"
    with pytest.raises(WaitTimeoutError):
        inbox.wait(timeout=0)
    assert [mail.subject for mail in inbox.list()] == ["one", "two", "three", "four"]


def test_hands_out_each_mail_once_to_threads(inbox: Inbox) -> None:
    subjects = ["a", "b", "c", "d", "e"]
    with ThreadPoolExecutor(len(subjects)) as pool:
        waits = [pool.submit(inbox.wait) for _ in subjects]
        for subject in subjects:
            send(inbox.address, subject)
        assert sorted(wait.result().subject for wait in waits) == subjects


def test_matches_all_conditions_at_once(inbox: Inbox) -> None:
    send(inbox.address, "Invoice", "for Ada")
    send(inbox.address, "Offer", "for Grace")
    send(inbox.address, "Invoice", "for Grace")
    mail = inbox.wait(subject="invoice", text="grace", to=inbox.address, from_="ADA@")
    assert (mail.subject, mail.text.strip()) == ("Invoice", "for Grace")


def test_rejects_a_condition_that_does_not_exist(inbox: Inbox) -> None:
    with pytest.raises(TypeError, match="sender"):
        inbox.wait(sender="ada")  # type: ignore[call-arg]


def test_says_what_came_instead(inbox: Inbox) -> None:
    send(inbox.address, "=?utf-8?q?Wel=E2=80=8Bcome?=")
    with pytest.raises(WaitTimeoutError) as missed:
        inbox.wait(subject="Confirm", has="code", timeout=0)
    assert (missed.value.code, missed.value.status, missed.value.timeout) == ("wait_timeout", None, 0)
    message = str(missed.value)
    assert f'No mail to {inbox.address} with "Confirm" in its subject, a code came within 0 s.' in message
    assert re.search(r'This came instead.*\n  \S+Z "Wel\\u\{200b\}come" from "ada@example\.org" to "test-', message)


def test_says_that_nothing_came(inbox: Inbox) -> None:
    with pytest.raises(WaitTimeoutError, match=r"came within 1\.1 s\. No other mail came either\."):
        inbox.wait(timeout=1.1)


def test_says_that_a_mail_has_no_code_and_no_link(inbox: Inbox) -> None:
    send(inbox.address, "Plain")
    mail = inbox.wait()
    assert (mail.codes, mail.links) == ((), ())
    with pytest.raises(TempmailError, match=r'The mail "Plain" from "ada@example\.org" has no code'):
        _ = mail.code
    with pytest.raises(TempmailError) as missing:
        _ = mail.link
    assert missing.value.code == "no_link"


def test_reads_raw_mail_and_attachments_and_deletes(inbox: Inbox) -> None:
    kind = 'Content-Type: text/csv; name="a.csv"\nContent-Disposition: attachment; filename="a.csv"\n'
    send(inbox.address, "Report", "1,2", kind)
    mail = inbox.wait(has="attachment")
    assert [(part.index, part.filename, part.content_type) for part in mail.attachments] == [(0, "a.csv", "text/csv")]
    assert inbox.attachment(mail, 0).strip() == b"1,2"
    assert b"Subject: Report" in inbox.raw(mail)
    inbox.delete(mail)
    assert inbox.list() == []
    with pytest.raises(TempmailError) as gone:
        inbox.raw(mail)
    assert (gone.value.code, gone.value.status) == ("not_found", 404)


def test_waits_with_the_token_of_the_team(tempmail: Tempmail, inbox: Inbox) -> None:
    send(inbox.address, "First")
    assert tempmail.wait(address=inbox.address).subject == "First"
    send(inbox.address, "Second")
    assert tempmail.wait(address=inbox.address).subject == "Second"
    assert tempmail.wait(address=inbox.address, since=inbox.since).subject == "First"
    with pytest.raises(WaitTimeoutError, match="No mail to any address of the tenant came within 0 s"):
        tempmail.wait(after=datetime.now(timezone.utc), timeout=0)
    with pytest.raises(TempmailError, match="no time zone"):
        tempmail.wait(after=datetime.now(), timeout=0)


def test_ends_with_its_inbox(tempmail: Tempmail) -> None:
    inbox = tempmail.inbox()
    inbox.close()
    with pytest.raises(TempmailError) as closed:
        inbox.wait()
    assert closed.value.code == "closed"
