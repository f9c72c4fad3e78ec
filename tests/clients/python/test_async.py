from __future__ import annotations

import anyio
import httpx
import pytest
from tempmail import AsyncInbox, AsyncTempmail, Mail, TempmailError, WaitTimeoutError

from shop import URL, confirms, send, sign_up


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_waits_while_other_tasks_run(anyio_backend: str) -> None:
    async with AsyncTempmail() as tempmail, await tempmail.inbox() as inbox, anyio.create_task_group() as tasks:
        mails: list[Mail] = []

        async def wait() -> None:
            mails.append(await inbox.wait(subject="Confirm"))

        tasks.start_soon(wait)
        async with httpx.AsyncClient() as client:
            await client.post(f"{URL}/api/sign-up", json={"email": inbox.address})
        while not mails:
            await anyio.sleep(0.01)
    assert confirms(inbox.address, mails[0].code)


@pytest.mark.anyio
async def test_has_what_the_blocking_one_has(async_inbox: AsyncInbox) -> None:
    sign_up(async_inbox.address)
    sign_up(async_inbox.address)
    assert len(await async_inbox.code()) == 6
    assert (await async_inbox.link()).startswith(URL)
    kind = 'Content-Type: text/csv; name="a.csv"\nContent-Disposition: attachment; filename="a.csv"\n'
    send(async_inbox.address, "Report", "1,2", kind)
    mail = await async_inbox.wait(has="attachment")
    assert (await async_inbox.attachment(mail, 0)).strip() == b"1,2"
    assert b"Subject: Report" in await async_inbox.raw(mail)
    await async_inbox.delete(mail)
    assert [listed.subject for listed in await async_inbox.list()] == ["Confirm your address"] * 2
    with pytest.raises(WaitTimeoutError):
        await async_inbox.wait(timeout=0)


@pytest.mark.anyio
async def test_gives_its_token_back_when_it_is_cancelled(async_inbox: AsyncInbox) -> None:
    with anyio.move_on_after(0.2):
        await async_inbox.wait()
    send(async_inbox.address, "Later")
    assert (await async_inbox.wait()).subject == "Later"
    assert len(async_inbox._token_ids) == 1


@pytest.mark.asyncio
async def test_has_a_fixture_for_other_plugins(async_inbox: AsyncInbox) -> None:
    sign_up(async_inbox.address)
    assert confirms(async_inbox.address, await async_inbox.code())


@pytest.mark.anyio
async def test_waits_with_the_token_of_the_team() -> None:
    async with AsyncTempmail() as tempmail:
        inbox = await tempmail.inbox()
        send(inbox.address, "First")
        assert (await tempmail.wait(address=inbox.address)).subject == "First"
        await inbox.close()
        with pytest.raises(TempmailError, match="is closed"):
            await inbox.wait()
