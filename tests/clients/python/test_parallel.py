from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import anyio
import httpx
import pytest
from tempmail import AsyncTempmail, Tempmail

from shop import URL, confirms, sign_up

ADDRESSES = [f"sign-up-{i}@inbox.localhost" for i in range(100)]


# A run finds the mails of the ones before at the same addresses, whose codes the site rejects.
@pytest.mark.anyio
@pytest.mark.parametrize("run", range(5))
async def test_gives_each_of_100_parallel_tasks_its_own_mail(run: int) -> None:
    for address in ADDRESSES:
        sign_up(address)
    confirmed: list[bool] = []

    async def confirm(tempmail: AsyncTempmail, client: httpx.AsyncClient, address: str) -> None:
        async with await tempmail.inbox(address) as inbox:
            (await client.post(f"{URL}/api/sign-up", json={"email": address})).raise_for_status()
            confirmed.append(confirms(address, await inbox.code()))

    async with AsyncTempmail() as tempmail, httpx.AsyncClient(timeout=60) as client, anyio.create_task_group() as tasks:
        for address in ADDRESSES:
            tasks.start_soon(confirm, tempmail, client, address)
    assert confirmed == [True] * len(ADDRESSES)


def test_gives_each_of_100_parallel_threads_its_own_mail(tempmail: Tempmail) -> None:
    for address in ADDRESSES:
        sign_up(address)
    with ThreadPoolExecutor(len(ADDRESSES)) as pool:
        inboxes = list(pool.map(tempmail.inbox, ADDRESSES))
        # All wait before the first one signs up.
        codes = [pool.submit(inbox.code, timeout=200) for inbox in inboxes]
        for address in ADDRESSES:
            sign_up(address)
        confirmed = [confirms(address, code.result()) for address, code in zip(ADDRESSES, codes, strict=True)]
        list(pool.map(lambda inbox: inbox.close(), inboxes))
    assert confirmed == [True] * len(ADDRESSES)
