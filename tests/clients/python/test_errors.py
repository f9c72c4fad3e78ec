from __future__ import annotations

import json
import os
import socket
from pathlib import Path

import pytest
from tempmail import ApiError, Tempmail, TempmailError, UnreachableError
from tempmail._advice import ADVICE

from shop import URL, faulty

OPERATIONS = {
    "/v1/config": ["get"],
    "/v1/domain/{domain}": ["get"],
    "/v1/email/{id}": ["delete"],
    "/v1/email/{id}/attachments/{index}": ["get"],
    "/v1/email/{id}/raw": ["get"],
    "/v1/inbox/{address}": ["get"],
    "/v1/me": ["get"],
    "/v1/tokens": ["post"],
    "/v1/tokens/{id}": ["delete"],
    "/v1/wait": ["post"],
}


def test_says_that_there_is_no_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TEMPMAIL_CLIENT_TOKEN")
    with pytest.raises(TempmailError, match=r"There is no token\. Set TEMPMAIL_CLIENT_TOKEN"):
        Tempmail()


@pytest.mark.parametrize(
    ("token", "inbox", "status", "code", "message"),
    [
        (f"tm_live_{'0' * 64}", {}, 401, "invalid_token", "was revoked: create one"),
        (None, {"domain": "elsewhere.example"}, 404, "not_found", "receives mail for the domain"),
        (None, {"address": "no address"}, 400, "invalid_request", "an address needs a domain"),
    ],
)
def test_says_what_to_do(token: str | None, inbox: dict[str, str], status: int, code: str, message: str) -> None:
    with Tempmail(token=token) as tempmail, pytest.raises(ApiError, match=message) as refused:
        tempmail.inbox(**inbox)
    error = refused.value
    assert (error.status, error.code, error.request) == (status, code, "POST /v1/tokens")
    assert error.advice in str(error)


def test_says_that_a_server_is_not_there_and_soon() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        with Tempmail(url, retry_for=3600) as tempmail, pytest.raises(UnreachableError) as unreachable:
            tempmail.inbox()
    assert (unreachable.value.status, unreachable.value.code) == (None, "unreachable")
    assert str(unreachable.value).startswith(f"No answer from {url}: ")
    assert "Check that tempmail runs there" in str(unreachable.value)


def test_says_that_something_else_answers() -> None:
    with Tempmail(faulty("login")) as tempmail, pytest.raises(ApiError) as redirected:
        tempmail.inbox()
    assert (redirected.value.status, redirected.value.code) == (302, "unexpected_answer")
    with Tempmail(URL) as tempmail, pytest.raises(ApiError, match="something else may answer there"):
        tempmail.inbox()
    with pytest.raises(TempmailError, match="is no http or https URL"):
        Tempmail("localhost:8080")


def test_refuses_a_timeout_that_is_no_time(tempmail: Tempmail) -> None:
    with tempmail.inbox() as inbox, pytest.raises(TempmailError) as refused:
        inbox.wait(timeout=float("nan"))
    assert refused.value.code == "invalid_option"


def test_has_advice_for_each_code_of_the_server() -> None:
    document = json.loads(Path(os.environ["OPENAPI"]).read_text())
    codes = set()
    for path, methods in OPERATIONS.items():
        for method in methods:
            for response in document["paths"][path][method]["responses"].values():
                name = response.get("$ref", "").removeprefix("#/components/responses/")
                content = (document["components"]["responses"][name] if name else response).get("content", {})
                schema = content.get("application/json", {}).get("schema", {})
                codes.update(schema.get("properties", {}).get("error", {}).get("enum", []))
    assert "token_busy" in codes
    assert codes | {"unexpected_answer"} == set(ADVICE)
