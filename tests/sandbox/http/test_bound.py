"""A sandbox that other machines reach. Here it listens on this one alone: `tests/docs/test_containers.py` has
two network namespaces."""

from __future__ import annotations

import http.client
import json
import re
import socket
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest

from payments_async import _loopback
from payments_async.sandbox import Sandbox
from payments_async.sandbox._http import server
from payments_async.sandbox._webhooks.sender import is_of_this_machine
from tests.sandbox.raw_requests import Api
from tests.support.canary import told_by

OTHER = "sandbox:7788"
"""The name that another container has for it."""
KEY = "sk_sandbox_made_up_by_us"
BEARER = {"Authorization": f"Bearer {KEY}"}


@pytest.fixture
def bound(monkeypatch: pytest.MonkeyPatch) -> Iterator[Sandbox]:
    monkeypatch.setattr(server, "listen", lambda port, host: _loopback.listen({"0.0.0.0": port}[host]))
    with Sandbox(bind="0.0.0.0", api_key=KEY) as sandbox:
        yield sandbox


def ask(sandbox: Sandbox, path: str, body: str | None = None, **headers: str) -> tuple[int, str, str]:
    """Status, text and Location of an answer, asked for by another machine's name."""
    line = http.client.HTTPConnection(urlsplit(sandbox.base_url).netloc, timeout=300)
    line.request("GET" if body is None else "POST", path, body, {"Host": OTHER, **headers})
    answer = line.getresponse()
    try:
        return answer.status, answer.read().decode(), answer.headers.get("Location", "")
    finally:
        line.close()


def path_of(url: str) -> str:
    return urlsplit(url).path


def root_of(url: str) -> str:
    """The segment with the token that an address begins with."""
    return f"/{path_of(url).split('/')[1]}"


def test_its_pages_need_the_token_and_its_api_the_key(bound: Sandbox) -> None:
    api, root = Api(bound, KEY), root_of(bound.inspector_url)
    checkout = api.checkout().data["checkout"]["url"]
    action = api.intent(attempt={"method_code": "sandbox_bank"}).data["active_attempt"]["next_action"]["url"]
    payers = root_of(checkout)
    assert (bound.api_key, len(root), len(payers), payers != root) == (KEY, 65, 65, True)
    assert bound.base_url == f"{bound.origin}/v1"
    for url in (
        bound.inspector_url,
        f"{bound.inspector_url}api/state",
        checkout,
        f"{checkout}/phone",
        action,
    ):
        page = path_of(url).removeprefix(own := root_of(url))
        assert (url, own) == (f"{bound.origin}{own}{page}", root if "/_sandbox/" in url else payers)
        assert [ask(bound, path)[0] for path in (f"{root}{page}", page)] == [200, 403]
        assert "It is not known who asks" in ask(bound, page)[1]
        assert ask(bound, page, **BEARER)[0] == (200 if page.startswith("/_sandbox/") else 403)
    for path in ("/v1/payouts", f"{root}/v1/payouts"):
        assert (ask(bound, path)[0], ask(bound, path, **BEARER)[0]) == (401, 200)


def test_a_payer_s_token_opens_payers_pages_and_no_control(bound: Sandbox) -> None:
    api, root = Api(bound, KEY), root_of(bound.inspector_url)
    checkout = path_of(api.checkout().data["checkout"]["url"])
    payers = root_of(checkout)
    api.payout()
    assert [ask(bound, f"{checkout}{part}")[0] for part in ("", "/phone")] == [200, 200]
    headers = {"Content-Type": "application/json", "Origin": f"http://{OTHER}"}
    for path, body in {
        "/_sandbox/": None,
        "/_sandbox/payouts": None,
        "/_sandbox/api/": None,
        "/_sandbox/api/payouts?reveal=1": None,
        "/_sandbox/api/reset": "{}",
        "/_sandbox/api/clock/speed": '{"speed": 0}',
    }.items():
        ways = (payers, f"{payers}/", f"{payers}/checkout/..", f"{payers}{payers}", f"/{payers}{root}")
        for between in ways:
            status, told, _ = ask(bound, f"{between}{path}", body, **headers)
            assert (status in (401, 403, 404), root[1:] in told) == (True, False)
    assert len(bound.books.payouts()) == 1
    assert ask(bound, f"{payers}/_sandbox/api/reset", "{}", **headers, **BEARER)[0] == 200, "the key opens it"


def test_no_page_of_a_payer_and_no_answer_of_the_api_has_the_developer_s_token(bound: Sandbox) -> None:
    api, root = Api(bound, KEY), root_of(bound.inspector_url)
    checkout = api.checkout().data["checkout"]
    bound.pay(checkout["id"], phone="+233200000001", country="GH", outcome="action:approve_on_phone")
    page = path_of(checkout["url"])
    shown = [ask(bound, f"{page}{part}")[1] for part in ("", "/payment", "/phone")]
    shown += [ask(bound, f"/v1/{name}?per_page=1", **BEARER)[1] for name in ("payouts", "payment/intents")]
    assert root[1:] not in "".join(shown)
    assert '"http' not in re.sub(f'"{bound.origin}/v1', "", shown[-2]), "pages of lists have no token"


def test_try_it_opens_the_payer_s_page_beside_the_phone_and_leads_back(bound: Sandbox) -> None:
    root = root_of(bound.inspector_url)
    headers = {"Content-Type": "application/json", "Origin": f"http://{OTHER}"}
    told = ask(bound, f"{root}/_sandbox/api/try/checkout", "{}", **headers)[1]
    page = f"{root}{json.loads(told)['open']}"
    shown = ask(bound, page)[1]
    (phone,) = re.findall(r'<aside class="beside".*?<iframe src="([^"]+)"', shown, re.DOTALL)
    assert "Confirm this payment" in ask(bound, phone)[1]
    bound.pay(page.split("/")[3])
    assert f'href="{root}/_sandbox/"' in ask(bound, page)[1]
    log = ask(bound, f"{root}/_sandbox/api/requests/{bound.requests[-1].request_id}")[1]
    assert root[1:] not in log


def test_a_request_as_curl_and_the_address_for_clients_have_no_token(bound: Sandbox) -> None:
    api, root = Api(bound, KEY), root_of(bound.inspector_url)
    api.payout()
    asked = f"{root}/_sandbox/api/requests/{bound.requests[-1].request_id}/code"
    code = json.loads(ask(bound, asked)[1])["code"]
    assert f"curl -sS -X POST {bound.origin}/v1/payouts " in code
    assert json.loads(ask(bound, f"{root}/_sandbox/api/state")[1])["base_url"] == bound.base_url


def test_a_payer_of_another_machine_pays(bound: Sandbox) -> None:
    page = path_of(Api(bound, KEY).checkout().data["checkout"]["url"])
    root = root_of(page)
    headers = {"Origin": f"http://{OTHER}", "Content-Type": "application/x-www-form-urlencoded"}

    def filled(path: str, **typed: str) -> str:
        shown = ask(bound, path)[1]
        links = re.findall(r'(?:href|src|action|data-page)="(/[^"]*)', shown)
        assert {link.startswith(f"{root}/") for link in links} == {True}
        return urlencode(dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', shown)) | typed)

    choice = {"country": "GH", "method": "sandbox_mobile", "sandbox_mobile-phone": "+233200000001"}
    form = filled(page, **choice)
    assert ask(bound, page, form, **{**headers, "Origin": "http://evil.test"})[0] == 403
    assert ask(bound, page, form, **headers) == (303, "", f"{page}/payment")
    assert ask(bound, f"{page}/phone", filled(f"{page}/phone", answer="approve"), **headers)[0] == 303
    assert bound.books.payments()[0].status == "completed"


def test_the_page_that_knows_the_token_controls_it_and_another_does_not(bound: Sandbox) -> None:
    for origin, status in ((f"http://{OTHER}", 200), ("http://evil.test", 403)):
        headers = {"Content-Type": "application/json", "Origin": origin}
        assert ask(bound, f"{root_of(bound.inspector_url)}/_sandbox/api/reset", "{}", **headers)[0] == status


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "127.9.9.9", "[::1]", "[::ffff:127.0.0.2]"])
def test_webhooks_do_not_go_to_its_own_pages(bound: Sandbox, host: str) -> None:
    Api(bound, KEY).payout(webhook_url=f"{bound.inspector_url}api/reset".replace("127.0.0.1", host))
    bound.wait_for_webhooks()
    assert "the sandbox's own" in str(bound.webhooks[0].reason)
    assert bound.webhooks[0].tries == ()


def test_webhooks_go_to_another_port_of_its_machine(bound: Sandbox) -> None:
    with socket.socket() as beside:
        beside.bind(("127.0.0.1", 0))  # nothing listens there
        Api(bound, KEY).payout(webhook_url=f"http://127.0.0.1:{beside.getsockname()[1]}/", scenario="manual")
        bound.wait_for_webhooks()
    assert "connection refused" in str(bound.webhooks[0].tries[0].error)


def test_an_address_of_this_machine_is_its_own_and_another_machine_s_is_not() -> None:
    expected = {"127.0.0.2": True, "::1": True, "0.0.0.0": True, "192.0.2.1": False, "2001:db8::1": False}
    assert {address: is_of_this_machine(address) for address in expected} == expected


def test_an_address_of_a_network_is_in_its_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "listen", lambda port, host: _loopback.listen({"10.231.7.2": port}[host]))
    with Sandbox(bind="10.231.7.2") as sandbox:
        assert {urlsplit(url).hostname for url in (sandbox.base_url, sandbox.inspector_url)} == {"10.231.7.2"}


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        *(({"bind": bind}, "bind must be an IPv4 address") for bind in ("127.0.0.1", "::", "sandbox", "")),
        ({"bind": "0.0.0.0", "shared": True}, "shared would let in everybody"),
        *(
            ({"api_key": key}, "8 to 200 letters, digits, - or _; it takes no live key")
            for key in ("sk_live_of_a_shop", "sk_sandbox_short", "sk_sandbox_of_a_shop ", b"sk_of_a_shop", "")
        ),
    ],
)
def test_what_it_cannot_be_bound_to_and_a_key_it_never_takes_are_refused(
    options: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ValueError, match=problem) as refused:
        Sandbox(**options)
    assert "shop" not in told_by(refused.value)
