"""The inspector's pages, as they are sent: complete, escaped, masked, bounded and readable without script."""

from __future__ import annotations

import asyncio
import html as markup
import json
import re
import subprocess
import sys
from pathlib import Path

import aiohttp
import pytest

from payments_async.sandbox import Sandbox, VirtualClock
from tests.sandbox.raw_requests import PAYOUT, TRIED, Api, LoggedExchange
from tests.support.patience import until

MOST = 60_000
"""Bytes that a page may weigh with what it loads."""
EVIL = "<script>alert(1)</script>\"'&"
NAV = ("", "payments", "payouts", "webhooks", "faults", "clock")
HOOK = "http://127.0.0.1:9/hook"


def page(sandbox: Sandbox, path: str = "", status: int = 200) -> str:
    answer = sandbox.handle("GET", f"/_sandbox/{path}")
    assert answer.status == status
    return answer.body.decode()


def text_of(html: str) -> str:
    """What a reader sees, blanks joined."""
    return " ".join(markup.unescape(re.sub("<[^>]*>", " ", html)).split())


def lived(sandbox: Sandbox, api: Api, reference: str = "r-1") -> list[str]:
    """Something happens of each kind; gives the addresses of all pages."""
    api.payout(reference=reference, webhook_url=HOOK, description=reference, idempotency_key="key-00001")
    api.payout(amount=0)
    session = api.checkout(description=reference).data["checkout"]["id"]
    payment = sandbox.pay(session, outcome="action:approve_on_phone", phone="+22990000077").id
    sandbox.on("payouts.create", reference=reference).respond("reset")
    (payout,) = sandbox.books.payouts()
    records = [f"payouts/{payout.id}", f"payments/{payment}", "webhooks/wh_00000001"]
    requests = [f"requests/{one.request_id}" for one in sandbox.requests]
    return [*NAV, *records, *requests]


def test_every_page_is_whole_without_script_and_without_other_hosts(sandbox: Sandbox, api: Api) -> None:
    for path in lived(sandbox, api):
        html = page(sandbox, path)
        assert html.startswith("<!doctype html>"), path
        assert html.rstrip().endswith("</html>"), path
        assert len(re.findall("<h1>", html)) == 1, path
        assert re.findall(r'<li><a href="/_sandbox/(\w*)"', html.partition("</nav>")[0]) == [*NAV], path
        assert html.count('aria-current="page"') == 1, path
        assert not re.search(r'onclick|<style|<script(?! type="module" src="/_sandbox/)', html), path
        assert not re.search(r'(?:src|href)="(?:https?:)?//', html), path
        named = re.findall(r"<(?:input|select)\b[^>]*>", html)
        labelled = re.findall(r"<label[^>]*>[^<]*<(?:input|select)|<(?:input|select)[^>]*aria-label", html)
        assert len(labelled) == len([one for one in named if 'type="hidden"' not in one]), path


@pytest.mark.parametrize("path", ["", "assets/inspector.js", "assets/inspector.css", "assets/icon.svg"])
def test_every_answer_has_a_strict_policy(sandbox: Sandbox, path: str) -> None:
    headers = sandbox.handle("GET", f"/_sandbox/{path}").headers
    policy = headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Cache-Control"] == ("no-store" if path == "" else "public, max-age=31536000, immutable")


def test_pages_are_read_only_and_unknown_ones_say_so(sandbox: Sandbox) -> None:
    assert sandbox.handle("POST", "/_sandbox/payouts").status == 405
    assert sandbox.handle("HEAD", "/_sandbox/payouts").status == 200
    for path, said in (
        ("nothing", "no such page"),
        ("requests/req_1", "no request"),
        ("payouts/po_1", "no payout 'po_1'"),
        ("payments/pi_1", "no payment 'pi_1'"),
        ("webhooks/wh_9", "no webhook 'wh_9'"),
        ("payouts?before=po_1", "not in this list any more"),
    ):
        assert said in text_of(page(sandbox, path, 404)), path


def test_what_requests_say_is_text_and_never_markup(sandbox: Sandbox, api: Api) -> None:
    api.payout(reference=EVIL, method=EVIL, webhook_url=f"http://127.0.0.1:9/{EVIL}")
    api.post("/payment/intents", {**TRIED, "metadata": {EVIL: EVIL}, "description": EVIL})
    headers = {
        "X-Evil": EVIL,
        "Origin": EVIL,
        "Authorization": f"Bearer {api.key}",
        "X-Idempotency-Key": EVIL,
    }
    sandbox.handle("GET", f"/v1/{EVIL}", headers)
    sandbox.on("payouts.create", reference=EVIL).respond("reset")
    payouts, payments = sandbox.books.payouts(), sandbox.books.payments()
    requests = [f"requests/{one.request_id}?reveal=1" for one in sandbox.requests]
    records = [f"payouts/{payouts[0].id}", f"payments/{payments[0].id}", "webhooks/wh_00000001"]
    found = f"?find={EVIL.replace('&', '%26')}"
    for path in [*NAV, *requests, *records, found, f"payouts{found}"]:
        assert EVIL[:17] not in page(sandbox, path), path


# --- secrets ------------------------------------------------------------------------------------


def test_a_request_shows_both_sides_masked_until_account_data_is_asked_for(
    sandbox: Sandbox, api: Api
) -> None:
    for scenario in ("lost_response", None):
        customer = {"email": "ada@example.test"}
        api.payout(idempotency_key="key-00001", scenario=scenario, customer=customer)
    first, second = (f"requests/{one.request_id}" for one in sandbox.requests)
    html = page(sandbox, first)
    for secret in ("22990000000", "ada@example.test", api.key):
        assert secret not in html
    for said in ("lost_response", "closed before the answer; the service had answered 201", "key-00001"):
        assert said in text_of(html)
    assert 'href="/_sandbox/?find=key-00001"' in html
    assert "replayed answer" in text_of(page(sandbox, second))
    revealed = text_of(page(sandbox, f"{first}?reveal=1"))
    assert "+22990000000" in revealed
    assert "ada@example.test" in revealed
    api.get("/utils/status/payment/method/m/BJ")
    assert "ccount data" not in page(sandbox, f"requests/{sandbox.requests[-1].request_id}"), "it has none"


def test_no_page_shows_a_secret_that_a_program_sent_in_the_wrong_place(sandbox: Sandbox, api: Api) -> None:
    headers = {
        "Authorization": f"Bearer {api.key}",
        "X-Api-Key": "s3cret",
        "Cookie": "session=s3cret",
        "From": "ada@example.test",
        "X-Idempotency-Key": "key-00001",
    }
    body = json.dumps({**PAYOUT, "description": api.key, "webhook_url": f"{HOOK}?token=s3cret"}).encode()
    sandbox.handle("POST", f"/v1/payouts?api_key={api.key}&mail=ada%40example.test", headers, body)
    (payout,) = sandbox.books.payouts()
    request = sandbox.requests[0].request_id
    records = (f"payouts/{payout.id}", "webhooks", "webhooks/wh_00000001")
    for path in ("", f"requests/{request}", f"api/requests/{request}", "api/requests", *records):
        shown = page(sandbox, path)
        for secret in (api.key, "s3cret", "ada@", "ada%40", "22990000000"):
            assert secret not in shown, path
    assert "s3cret" not in page(sandbox, f"requests/{request}?reveal=1").replace("token=s3cret", "")


def test_a_card_number_is_hidden_in_a_request_and_as_a_name(sandbox: Sandbox, api: Api) -> None:
    note = {"note": "5105 1051 0510 5100 11/29", "pan": "4242", "cvv": 987, "order": 5105105105105100}
    api.checkout(description="for 5105-1051-0510-5100, please", metadata=note)
    for path in (f"requests/{sandbox.requests[-1].request_id}", "payments"):
        shown = page(sandbox, path)
        assert "please" in shown
        assert not re.search("5105[- ]?1051|4242|987", re.sub("<[^>]*>", "", shown)), path


# --- what is long, or gone ----------------------------------------------------------------------


def test_no_page_grows_without_bound(sandbox: Sandbox, api: Api) -> None:
    for number in range(150):
        api.payout(reference=f"r-{number}", webhook_url=HOOK, description="d" * 500)
        api.checkout(description="d" * 500)
        sandbox.on("payouts.list", status=f"r-{number}").respond("reset")
        api.get("/payouts?reference=r-0")
    for _ in range(80):  # lines as long as they come
        api.payout(reference="r" * 191, method="", instrument={"type": "phone"}, metadata=[], description=7)
        api.get(f"/nowhere/{'p' * 900}")
        api.payout(reference="r-0", amount=0)
    session = api.checkout().data["checkout"]["id"]
    for _ in range(12):
        sandbox.pay(session, outcome="fail:CUSTOMER_DECLINED")
    headers = {"Authorization": f"Bearer {api.key}", "X-Long": "h" * 8_000}
    sandbox.handle("GET", f"/v1/payouts?per_page=100&q={'q' * 8_000}", headers)
    payout, payment = sandbox.books.payouts()[0].id, sandbox.books.payments()[-1].id
    request = f"requests/{sandbox.requests[-1].request_id}?reveal=1"
    assert f'href="/_sandbox/api/{request}"' in page(sandbox, request), "all of it, as JSON"
    records = [f"payouts/{payout}", f"payments/{payment}", "webhooks/wh_00000001", request]
    for path in [*NAV, *records, "?kind=failed", "payouts?status=pending"]:
        html = page(sandbox, path)
        loaded = set(re.findall(r'(?:href|src)="(/_sandbox/assets/[^"?]*)', html))
        weight = len(html.encode()) + sum(len(sandbox.handle("GET", asset).body) for asset in loaded)
        assert weight < MOST, (path, len(html))


def test_a_request_that_was_let_go_says_so_and_offers_neither_copy_nor_sending(
    sandbox: Sandbox, api: Api
) -> None:
    api.payout(idempotency_key="key-00001")
    name = f"requests/{sandbox.requests[0].request_id}"
    assert "Copy as curl" in text_of(page(sandbox, name))
    for entry in sandbox.entries():
        if isinstance(entry.item, LoggedExchange):
            entry.item.drop_bytes()
    shown = text_of(page(sandbox, name))
    assert "Its headers and bodies were deleted" in shown
    assert not re.search("No body|Copy as curl", shown)


def test_a_request_has_what_it_caused_and_not_what_had_fallen_due(sandbox: Sandbox, api: Api) -> None:
    api.payout(reference="early")
    sandbox.advance(10)
    api.payout(reference="late")
    shown = text_of(page(sandbox, f"requests/{sandbox.requests[-1].request_id}"))
    caused = shown.partition("Caused")[2].partition("Account data")[0]
    assert ("late" in caused, "early" in caused) == (True, False)


# --- time ---------------------------------------------------------------------------------------


async def test_a_request_says_how_long_its_answer_took() -> None:
    async with (
        Sandbox(clock=VirtualClock.frozen()) as sandbox,
        aiohttp.ClientSession(headers={"Authorization": f"Bearer {sandbox.api_key}"}) as session,
    ):
        sandbox.on("payouts.create").respond("slow:60", times=1)
        call = asyncio.create_task(session.post(f"{sandbox.base_url}/payouts", json=PAYOUT))
        await until(lambda: bool(sandbox.requests))
        assert "under way" in page(sandbox)
        sandbox.advance(60)
        async with await call as answer:
            assert answer.status == 201
        await until(lambda: "under way" not in page(sandbox))
        sandbox.on("payouts.list").respond("hang", times=1)
        left = asyncio.create_task(session.get(f"{sandbox.base_url}/payouts"))
        await until(lambda: "under way" in page(sandbox))
        left.cancel()  # a caller who leaves ends it too
        await asyncio.gather(left, return_exceptions=True)
        await until(lambda: "under way" not in page(sandbox))


# --- the beginning ------------------------------------------------------------------------------


PROGRAMS = {
    "checkout": ["open http://", "paid"],
    "checkout-async": ["open http://", "paid"],
    "payout": ["completed"],
    "payout-async": ["completed"],
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_unused_sandbox_has_programs_that_run_as_they_are_copied(tmp_path: Path, name: str) -> None:
    with Sandbox(scenario="complete immediate") as sandbox:  # so that the program need not wait
        shown = page(sandbox)
        assert set(re.findall(r'data-text="([^"]+)"', shown)) == set(PROGRAMS)
        found = re.search(rf'id="{name}">(.*?)</pre>', shown, re.DOTALL)
        assert found is not None
        program = tmp_path / "first.py"
        program.write_text(markup.unescape(found[1]))
        command = [sys.executable, "-u", program]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for start in PROGRAMS[name]:
                assert process.stdout.readline().startswith(start)
                for payment in sandbox.books.payments(status="pending"):
                    sandbox.pay(payment.id)
            assert process.communicate() == ("", "")
        faults = [one.fault for one in sandbox.requests if one.method == "POST"]
        assert faults == (["lost_response", None] if "payout" in name else [None])
        assert len(sandbox.books.payouts()) == ("payout" in name)
        assert "Try it" not in page(sandbox)


def tried(sandbox: Sandbox, what: str, status: int = 201) -> dict[str, str]:
    """The answer to a button of Try it."""
    answer = sandbox.handle("POST", f"/_sandbox/api/try/{what}", {"Content-Type": "application/json"}, b"{}")
    assert answer.status == status
    return json.loads(answer.body)


@pytest.mark.parametrize("profile", ["observed", "strict", "alternate", "hostile"])
def test_try_it_loses_an_answer_and_draws_the_payout_s_timeline(profile: str) -> None:
    sandbox = Sandbox(clock=VirtualClock.frozen(), profile=profile)
    opened = tried(sandbox, "payout")["open"].removeprefix("/_sandbox/")
    lost, again = sandbox.requests
    assert (lost.fault, again.fault, again.replayed) == ("lost_response", None, True)
    (payout,) = sandbox.books.payouts()
    for seconds, status in ((0, "pending"), (5, "completed")):
        sandbox.advance(seconds)
        shown = page(sandbox, opened)
        timeline = text_of(shown.partition('<ol class="log timeline"')[2].partition("</ol>")[0])
        assert re.search(r"new → pending .* lost_response .* no answer .* replayed answer", timeline)
        assert ("→ completed" in timeline) is (status == "completed")
        assert f'<span class="pill {"ok" if seconds else "idle"}">{status}</span>' in shown
        assert f"/_sandbox/payouts/{payout.id}" in shown
        assert "Try it" in shown
        assert "/_sandbox/?try=" not in shown, "its links lead to the log"
    sandbox.reset()
    assert "no payout" in page(sandbox, opened, 404)


@pytest.mark.parametrize("profile", ["observed", "strict", "alternate", "hostile"])
def test_try_it_opens_the_page_of_a_payer_beside_the_phone_that_asks(profile: str) -> None:
    sandbox = Sandbox(profile=profile)
    opened = tried(sandbox, "checkout")["open"]
    shown = sandbox.handle("GET", opened).body.decode()
    assert "Approve on your phone" in shown
    (phone,) = re.findall(r'<aside class="beside".*?<iframe src="([^"]+)"', shown, re.DOTALL)
    assert "Confirm this payment" in sandbox.handle("GET", phone).body.decode()
    sandbox.pay(opened.split("/")[2])
    assert f'href="{sandbox.origin}/_sandbox/"' in sandbox.handle("GET", opened).body.decode()


def test_try_it_says_so_where_a_rule_decides_otherwise(sandbox: Sandbox) -> None:
    for words in ("http:503", "lost_response"):
        sandbox.on("checkouts.create").respond(words)
        assert "see its faults" in tried(sandbox, "checkout", 409)["message"]


def test_pages_and_what_makes_them_are_imported_with_the_first_page() -> None:
    code = (
        "import sys; from payments_async.sandbox import Sandbox\n"
        "with Sandbox() as sandbox: sandbox.handle('GET', '/v1/payouts')\n"
        "late = ('inspector', 'control_api', 'jinja2', 'segno')\n"
        "print([module for module in sys.modules if any(name in module for name in late)])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
