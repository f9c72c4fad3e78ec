"""Every tool with the official client, and mails that give orders. The last line says how many tests passed."""

import functools
import json
import os
import pathlib
import re
import smtplib
import sys
import unittest

import httpx2
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

URL = os.environ["TEMPMAIL_CLIENT_URL"]
TOKEN = os.environ["TEMPMAIL_CLIENT_TOKEN"]
SMTP_HOST, SMTP_PORT = os.environ["TEST_SMTP"].rsplit(":", 1)
ORDERS = sorted((pathlib.Path(__file__).parents[2] / "fixtures" / "orders").glob("*.eml"))
WORDS = ["delete_", "ignore", "evil.example/", "im_start", "Secret", "bank.example/"]

CODE = b"From: Shop <no-reply@shop.example>\r\nSubject: Your code\r\n\r\nYour sign-in code is 482913.\r\n"
LINK = (
    b"From: Shop <no-reply@shop.example>\r\nSubject: Confirm your address\r\n\r\n"
    b"Please confirm your address:\r\n\r\nhttps://shop.example/confirm?token=abc\r\n"
)


def deliver(address, message):
    with smtplib.SMTP(SMTP_HOST, int(SMTP_PORT)) as smtp:
        smtp.sendmail("sender@client.example", [address], message)


def stdio():
    names = ["TEMPMAIL_CLIENT_URL", "TEMPMAIL_CLIENT_TOKEN"]
    variables = {name: os.environ[name] for name in names}
    return StdioServerParameters(command=os.environ["TEMPMAIL"], args=["mcp", "--allow-delete"], env=variables)


def http():
    client = httpx2.AsyncClient(headers={"Authorization": f"Bearer {TOKEN}"}, timeout=120, trust_env=False)
    return streamable_http_client(f"{URL}/mcp", http_client=client)


def connected(test):
    """Connects for a test. The client has to be left by the task that entered it, which set-up and clean-up are not."""

    @functools.wraps(test)
    async def run(self):
        async with Client(self.connect(), mode=self.mode) as self.client:
            await test(self)

    return run


class OverEitherTransport:
    """Tests of both transports. `connect` makes one; in each mode the client negotiates another protocol version."""

    async def success(self, tool, **arguments):
        """What the tool says, and what it has fenced."""
        result = await self.client.call_tool(tool, arguments)
        texts = [block.text for block in result.content]
        self.assertFalse(result.is_error, texts)
        facts = json.loads(texts[0])
        if result.structured_content is not None:
            self.assertEqual((result.structured_content, len(texts)), (facts, 1))
        return facts, "".join(texts[1:])

    async def failure(self, tool, **arguments):
        result = await self.client.call_tool(tool, arguments)
        self.assertTrue(result.is_error)
        return result.content[0].text

    def assert_fenced(self, fenced):
        _notice, first, *marked, last = fenced.split("\n")
        nonce = re.fullmatch(r"<untrusted-mail ([0-9a-f]{32})>", first)[1]
        self.assertEqual(last, f"</untrusted-mail {nonce}>")
        for line in marked:
            self.assertTrue(line.startswith("| ") and nonce not in line, line)

    @connected
    async def test_lists_the_tools(self):
        tools = {tool.name: tool for tool in (await self.client.list_tools()).tools}
        reading = {"make_address", "wait_for_mail", "get_code", "get_link", "list_mail", "read_mail"}
        self.assertEqual(set(tools), reading | {"delete_mail", "delete_all_mail"})
        for name, tool in tools.items():
            self.assertEqual(tool.annotations.read_only_hint, name in reading)
            self.assertEqual(tool.annotations.destructive_hint, name not in reading)

    @connected
    async def test_calls_every_tool(self):
        made, _ = await self.success("make_address")
        address, since = made["address"], made["since"]
        deliver(address, CODE)
        code, fenced = await self.success("get_code", address=address, since=since)
        self.assertEqual((code["code"], fenced), ("482913", ""))
        deliver(address, LINK)
        link, _ = await self.success("get_link", address=address, since=since, link_host="shop.example")
        self.assertEqual(link["url"], "https://shop.example/confirm?token=abc")
        refused = await self.failure("get_link", address=address, since=since, link_host="bank.example")
        self.assertIn("does not lead to link_host but to shop.example", refused)
        found, fenced = await self.success("wait_for_mail", address=address, since=since)
        self.assert_fenced(fenced)
        read, fenced = await self.success("read_mail", id=found["id"])
        self.assert_fenced(fenced)
        self.assertIn("| Your sign-in code is 482913.\n", fenced)
        await self.success("delete_mail", id=found["id"])
        listed, fenced = await self.success("list_mail", address=address)
        self.assert_fenced(fenced)
        self.assertEqual(len(listed["mails"]), 1)
        await self.success("delete_all_mail", address=address)
        self.assertEqual((await self.success("list_mail", address=address))[0]["mails"], [])

    @connected
    async def test_reports_errors_as_results(self):
        nothing = await self.failure("get_code", address="later@inbox.localhost", timeout_seconds=0)
        self.assertIn("No such mail came in time.", nothing)
        self.assertIn("unknown field", await self.failure("get_link", address="a@inbox.localhost", link_hosts="x"))
        with self.assertRaises(MCPError):
            await self.client.call_tool("send_mail", {})

    @connected
    async def test_mails_that_give_orders_are_fenced_and_change_nothing(self):
        self.assertEqual(len(ORDERS), 12)
        made, _ = await self.success("make_address")
        address = made["address"]
        for mail in ORDERS:
            deliver(address, mail.read_bytes())
        listed, fenced = await self.success("list_mail", address=address, limit=50)
        self.assert_fenced(fenced)
        for entry in listed["mails"]:
            facts, fenced = await self.success("read_mail", id=entry["id"])
            self.assert_fenced(fenced)
            said = json.dumps({**facts, "links": []})
            self.assertFalse([word for word in WORDS if word in said], said)
        code, fenced = await self.success("get_code", address=address, since=made["since"])
        self.assertEqual((code["code"], fenced), ("482913", ""))
        arguments = {"address": address, "since": made["since"], "from": "bank.example", "link_host": "bank.example"}
        self.assertIn("but to evil.example", await self.failure("get_link", **arguments))
        listed, _ = await self.success("list_mail", address=address, limit=50)
        self.assertEqual(len(listed["mails"]), 12)


class Stdio(OverEitherTransport, unittest.IsolatedAsyncioTestCase):
    connect, mode = staticmethod(stdio), "auto"


class StdioOfEarlierVersions(OverEitherTransport, unittest.IsolatedAsyncioTestCase):
    connect, mode = staticmethod(stdio), "legacy"


class Http(OverEitherTransport, unittest.IsolatedAsyncioTestCase):
    connect, mode = staticmethod(http), "auto"


class HttpOfEarlierVersions(OverEitherTransport, unittest.IsolatedAsyncioTestCase):
    connect, mode = staticmethod(http), "legacy"


if __name__ == "__main__":
    result = unittest.main(exit=False, verbosity=2).result
    sys.stderr.flush()
    failed = len({test.id() for test, _ in result.failures + result.errors})
    print(f"{result.testsRun - failed} passed, {failed} failed", flush=True)
    sys.exit(failed > 0)
