"""The inspector's pages, as they are sent: complete, escaped, masked, bounded and readable without script."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path

import attrs
import pytest

from payments_async.sandbox import Profile, Sandbox, SandboxLimits, VirtualClock
from payments_async.sandbox._common.profiles import PROFILES
from payments_async.sandbox._common.scenario_words import ACTION_TYPES
from payments_async.sandbox._inspector.page_request import NAV
from payments_async.sandbox._journal import LoggedExchange, WebhookTried
from payments_async.sandbox._record_actions import find_payment
from payments_async.sandbox._webhooks import WebhookTry
from payments_async.sandbox.advisor._assumptions import assumptions
from tests.sandbox.raw_requests import INTENT, PAYOUT, TRIED, Api

MOST = 59_800
"""Of the 60,000 bytes that a page may weigh: there is room for a line more here and there."""
EVIL = "<script>alert(1)</script>\"'&"


def page(sandbox: Sandbox, path: str = "", status: int = 200) -> str:
    answer = sandbox.handle("GET", f"/_sandbox/{path}")
    assert answer.status == status
    return answer.body.decode()


def text_of(html: str) -> str:
    """What a reader sees, blanks joined."""
    found: list[str] = []

    class Reader(HTMLParser):
        def handle_data(self, data: str) -> None:
            found.append(data)

    Reader().feed(html)
    return " ".join(" ".join(found).split())


@pytest.mark.parametrize("path", [name for name, _ in NAV])
def test_every_page_is_whole_without_script(sandbox: Sandbox, path: str) -> None:
    html = page(sandbox, path)
    assert html.startswith("<!doctype html>")
    assert html.rstrip().endswith("</html>")
    assert len(re.findall("<h1>", html)) == 1
    assert html.count('aria-current="page"') == 1
    assert "onclick" not in html
    assert "<style" not in html
    assert not re.search(r"<script(?! type=\"module\" src=\"/_sandbox/)", html)
    assert not re.search(r"(?:src|href)=\"(?:https?:)?//", html)


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
    assert "no such page" in text_of(page(sandbox, "nothing", 404))
    assert "no request" in text_of(page(sandbox, "requests/req_1", 404))


# --- with something to show ---------------------------------------------------------------------


def test_a_request_shows_both_sides_masked_until_account_data_is_asked_for(
    sandbox: Sandbox, api: Api
) -> None:
    api.payout(idempotency_key="key-00001", scenario="lost_response", customer={"email": "ada@example.test"})
    api.payout(idempotency_key="key-00001", customer={"email": "ada@example.test"})
    request = sandbox.requests[0].request_id
    html = page(sandbox, f"requests/{request}")
    assert "22990000000" not in html
    assert "ada@example.test" not in html
    assert api.key not in html
    shown = text_of(html)
    for said in (
        "lost_response",
        "closed before the answer",
        "key-00001",
        "replayed",
        sandbox.requests[1].request_id,
    ):
        assert said in shown
    revealed = text_of(page(sandbox, f"requests/{request}?reveal=1"))
    assert "+22990000000" in revealed
    assert "ada@example.test" in revealed


def test_no_page_shows_a_secret_that_a_program_sent_in_the_wrong_place(sandbox: Sandbox, api: Api) -> None:
    headers = {
        "Authorization": f"Bearer {api.key}",
        "X-Api-Key": "s3cret",
        "Cookie": "session=s3cret",
        "From": "ada@example.test",
        "X-Idempotency-Key": "key-00001",
    }
    body = json.dumps({**PAYOUT, "description": api.key}).encode()
    sandbox.handle("POST", f"/v1/payouts?api_key={api.key}&mail=ada%40example.test", headers, body)
    request = sandbox.requests[0].request_id
    for path in ("", f"requests/{request}", f"api/requests/{request}", "api/journal"):
        shown = page(sandbox, path)
        for secret in (api.key, "s3cret", "ada@", "ada%40"):
            assert secret not in shown, path
    assert "key-00001" in page(sandbox, f"requests/{request}")
    assert "s3cret" not in page(sandbox, f"requests/{request}?reveal=1")


def test_a_request_that_was_let_go_says_so_and_offers_neither_copy_nor_sending(
    sandbox: Sandbox, api: Api
) -> None:
    api.payout(idempotency_key="key-00001")
    api.get("/payouts")
    first, second = (f"requests/{request.request_id}" for request in sandbox.requests)
    assert "No body." not in text_of(page(sandbox, first))
    assert "No body." in text_of(page(sandbox, second))
    for name in (first, second):
        assert "Send again" in page(sandbox, name)
        assert "data-copy-url" in page(sandbox, name)
    for entry in sandbox.entries():
        if isinstance(entry.item, LoggedExchange):
            entry.item.drop_bytes()
    for name in (first, second):
        html = page(sandbox, name)
        shown = text_of(html)
        assert "Its headers and bodies were deleted" in shown
        assert "No body." not in shown
        assert "Send again" not in shown
        assert "data-copy-url" not in html
        said = json.loads(sandbox.handle("GET", f"/_sandbox/api/{name}").body)
        assert (said["let_go"], said["body"], said["answer"]) == (True, None, None)
        for path, method in ((f"{name}/code", "GET"), (f"{name}/replay", "POST")):
            refused = sandbox.handle(method, f"/_sandbox/api/{path}", {"Content-Type": "application/json"})
            assert refused.status == 410
            assert "no longer kept" in json.loads(refused.body)["message"]


def test_a_long_payload_is_shown_from_its_beginning_and_says_how_long_it_is(
    sandbox: Sandbox, api: Api
) -> None:
    metadata = {f"name-{number}": "v" * 480 for number in range(10)}
    api.payout(reference="long", metadata=metadata, webhook_url="http://127.0.0.1:9/hook")
    api.payout(reference="short", webhook_url="http://127.0.0.1:9/hook")
    long, short = (page(sandbox, f"webhooks/wh_0000000{number}") for number in (1, 2))
    assert re.search(r"The first 4,000 of [56],\d{3} characters. All of it, as JSON", text_of(long))
    assert "name-9" not in long
    assert "name-9" in sandbox.handle("GET", "/_sandbox/api/webhooks/wh_00000001").body.decode()
    assert "The first 4,000" not in short


def test_a_request_without_account_data_offers_nothing_to_show(sandbox: Sandbox, api: Api) -> None:
    api.get("/utils/status/payment/method/m/BJ")
    assert "account data" not in page(sandbox, f"requests/{sandbox.requests[0].request_id}")


def test_what_requests_say_is_text_and_never_markup(sandbox: Sandbox, api: Api) -> None:
    api.payout(reference=EVIL, description=EVIL, method=EVIL, webhook_url=f"http://127.0.0.1:9/{EVIL}")
    sandbox.handle(
        "GET", f"/v1/{EVIL}", {"X-Evil": EVIL, "Origin": EVIL, "Authorization": f"Bearer {api.key}"}
    )
    api.post("/payment/intents", {**TRIED, "metadata": {EVIL: EVIL}})
    sandbox.on("payouts.create", reference=EVIL).respond("reset")
    requests = [f"requests/{one.request_id}?reveal=1" for one in sandbox.requests]
    payout, payment = sandbox.books.payouts()[0].id, sandbox.books.payments()[0].id
    records = [f"payouts/{payout}", f"payments/{payment}", "webhooks/wh_00000001"]
    for path in [*(name for name, _ in NAV), *requests, *records]:
        assert EVIL[:17] not in page(sandbox, path), path


def test_payments_show_tries_and_what_can_be_done(sandbox: Sandbox, api: Api) -> None:
    session = api.checkout().data["checkout"]["id"]
    sandbox.pay(session, outcome="fail:CUSTOMER_DECLINED")
    shown = page(sandbox, "payments")
    assert ">CUSTOMER_DECLINED<" in shown
    sandbox.advance(3)
    sandbox.pay(session, outcome="action:approve_on_phone", phone="+22990000077")
    shown = page(sandbox, "payments")
    tries = re.search(r'role="img" title="([^"]+)"><i class="bad"></i><i class="idle"></i>', shown)
    assert tries is not None
    assert re.fullmatch(r"\w+: failed; \w+: action_required", tries[1])
    assert "approve_on_phone" in text_of(shown)
    assert "Pay Decline Payer's page" in text_of(shown)
    assert "22990000077" not in shown
    assert f"/checkout/{session}" in shown
    opened = text_of(page(sandbox, f"payments/{sandbox.books.payments()[0].id}"))
    for said in ("CUSTOMER_DECLINED", "action_required", "Pay Decline Expire"):
        assert said in opened
    sandbox.pay(session, outcome="complete")
    assert "Refund XOF 50" in text_of(page(sandbox, "payments"))
    sandbox.refund(session, "20.5")
    assert "XOF 20.5 refunded" in text_of(page(sandbox, "payments"))


def test_an_amount_has_its_currency_first_and_its_thousands_apart(sandbox: Sandbox, api: Api) -> None:
    api.payout(amount=1250.75, currency="GHS")
    api.checkout(amount=1_250_000, currency="XOF")
    assert "GHS 1,250.75" in text_of(page(sandbox, "payouts"))
    assert "XOF 1,250,000" in text_of(page(sandbox, "payments"))


def test_a_payout_has_its_plan_its_failure_and_buttons_while_it_is_open(sandbox: Sandbox, api: Api) -> None:
    api.payout(reference="open", metadata={"sandbox_scenario": "manual"})
    api.payout(reference="done", metadata={"sandbox_scenario": "fail:NO_FUNDS immediate"})
    shown = text_of(page(sandbox, "payouts"))
    assert re.search(
        r"done failed .* NO_FUNDS \S+ open pending .* complete manual \S+ Complete Fail Hang", shown
    )
    assert shown.count("Complete Fail Hang") == 1


def test_the_phone_shows_codes_and_approvals_of_open_payments(sandbox: Sandbox, api: Api) -> None:
    session = api.checkout().data["checkout"]["id"]
    sandbox.pay(session, outcome="action:collect_otp", phone="+22990000077")
    api.post("/payment/intents", {**TRIED, "metadata": {"sandbox_scenario": "action:approve_on_phone"}})
    api.post("/payment/intents", {**TRIED, "metadata": {"sandbox_scenario": "action:scan_qr_code"}})
    api.post("/payment/intents", {**TRIED, "metadata": {"sandbox_scenario": "action:redirect_to_url"}})
    shown = text_of(page(sandbox, "phone"))
    assert re.search(r"Your code is \d{6}", shown)
    assert shown.count("Approve Decline") == 2
    assert "22990000077" not in shown
    code = re.search(r"\d{6}(?= \.)", shown)
    theirs = sandbox.handle("GET", f"/checkout/{session}/phone").body.decode()
    assert code is not None
    assert code[0] in theirs


@pytest.mark.parametrize("kind", ACTION_TYPES)
def test_an_attempt_leads_to_where_its_payer_acts(sandbox: Sandbox, api: Api, kind: str) -> None:
    api.post("/payment/intents", {**TRIED, "metadata": {"sandbox_scenario": f"action:{kind}"}})
    shown = page(sandbox, "payments")
    found = re.search(r'href="(/actions/[^"]+)">([^<]+)<', shown)
    assert (found is None) == (kind == "none")
    if found is not None:
        assert found[2] == kind
        assert sandbox.handle("GET", found[1]).status == 200
    on_phone = kind in ("approve_on_phone", "collect_otp", "scan_qr_code")
    assert (">Open this phone<" in page(sandbox, "phone")) == on_phone


def test_the_phone_shows_the_code_of_an_intent_of_the_api(sandbox: Sandbox, api: Api) -> None:
    api.post("/payment/intents", {**TRIED, "metadata": {"sandbox_scenario": "action:collect_otp"}})
    shown = page(sandbox, "phone")
    code, phone = re.search(r"\d{6}(?=</strong>)", shown), re.search(r"/actions/[^\"]+/phone", shown)
    assert code is not None
    assert phone is not None
    assert code[0] in sandbox.handle("GET", phone[0]).body.decode()
    assert f"/_sandbox/payments/{sandbox.books.payments()[0].id}" in shown


def test_payouts_of_all_keys_are_shown_newest_first(sandbox: Sandbox, api: Api) -> None:
    other = Api(sandbox, sandbox.new_key())
    for number in range(4):
        (api, other)[number % 2].payout(reference=f"r-{number}")
        sandbox.advance(1)
    sandbox.advance(10)
    shown = text_of(page(sandbox, "payouts"))
    assert [shown.index(f"r-{number}") for number in (3, 2, 1, 0)] == sorted(
        shown.index(f"r-{number}") for number in range(4)
    )


def test_faults_show_what_remains(sandbox: Sandbox, api: Api) -> None:
    sandbox.on("payouts.create", reference="r-1").respond("http:503", times=3)
    api.payout(reference="r-1")
    assert "http:503*3 reference=r-1 1 2 Remove" in text_of(page(sandbox, "faults"))


def test_a_fault_for_every_time_stays_active_after_it_struck(sandbox: Sandbox, api: Api) -> None:
    sandbox.on("payouts.create").respond("http:503", times=None)
    api.payout()
    html = page(sandbox, "faults")
    assert "http:503 (every time) any 1 every time Remove" in text_of(html)
    assert 'class="done"' not in html
    assert "1 active rule" in text_of(page(sandbox))
    (rule,) = json.loads(sandbox.handle("GET", "/_sandbox/api/rules").body)["rules"]
    assert (rule["used"], rule["remaining"], rule["used_up"]) == (1, None, False)


def test_webhooks_show_their_tries_and_their_pages_what_they_say(sandbox: Sandbox, api: Api) -> None:
    api.payout(webhook_url="http://127.0.0.1:9/hook?token=secret")
    sandbox.forge(sandbox.books.payouts()[0].id)
    html = page(sandbox, "webhooks")
    assert "secret" not in html
    assert "forged" in text_of(html)
    opened = page(sandbox, "webhooks/wh_00000001")
    assert "secret" not in opened
    assert "22990000000" not in opened
    assert '"event": "payout.created"' in text_of(opened)


def test_tries_and_timelines_have_their_dates(sandbox: Sandbox, api: Api) -> None:
    api.payout(webhook_url="http://127.0.0.1:9/hook")
    began = sandbox.clock.now()
    (hook,) = sandbox.webhooks
    for after in (0.0, 30.0, 86_400.0):
        sandbox._outbox.queue.take(began + after, 1)
        sandbox._outbox.queue.report(hook.id, WebhookTry(began + after, 0.01, 500, None))
    shown = page(sandbox, "webhooks")
    tries = "2026-01-01 00:00:00: 500; 2026-01-01 00:00:30: 500; 2026-01-02 00:00:00: 500; next: 2026-01-02"
    assert f'title="{tries}' in shown
    assert '<i class="bad"></i><i class="bad"></i><i class="bad"></i><i class="next"></i>' in shown
    assert re.search(
        r"State failing 1 .* failing XOF 50 .* 500 2026-01-02 \S+ 00:00:00 Resend", text_of(shown)
    )
    api.post("/payment/intents", {**TRIED, "metadata": {"sandbox_scenario": "after=24h"}})
    sandbox.advance(86_400)
    shown = text_of(page(sandbox, f"payments/{sandbox.books.payments()[0].id}"))
    assert "2026-01-01 00:00:00 pa_" in shown
    assert "2026-01-02 Service 00:00:00.000 +24 h attempt expired" in shown


def test_a_time_that_no_date_can_say_is_shown_as_the_last_second() -> None:
    sandbox = Sandbox(clock=VirtualClock.frozen(datetime(9999, 1, 1, tzinfo=UTC).timestamp()))
    api = Api(sandbox, sandbox.api_key)
    words = {"sandbox_scenario": "delay:87600h"}
    api.payout(webhook_url="http://127.0.0.1:9/hook", metadata=words)
    assert "waiting" in text_of(page(sandbox, "webhooks"))
    (hook,) = json.loads(sandbox.handle("GET", "/_sandbox/api/webhooks").body)["webhooks"]
    assert hook["next_at"] == "9999-12-31T23:59:59.000000Z"


def test_an_empty_board_has_its_own_program_and_an_empty_phone_its_ways(sandbox: Sandbox, api: Api) -> None:
    api.get("/payouts")
    html = page(sandbox, "payouts")
    assert 'data-copy="#program"' in html
    assert sandbox.api_key in html
    assert "hosted checkout" in text_of(page(sandbox, "phone"))


def test_a_webhook_has_its_page_however_old(sandbox: Sandbox, api: Api) -> None:
    for number in range(40):
        api.payout(reference=f"r-{number}", webhook_url="http://127.0.0.1:9/hook")
    assert "wh_00000001" not in page(sandbox, "webhooks")
    opened = page(sandbox, "webhooks/wh_00000001")
    assert '"event": "payout.created"' in text_of(opened)


def test_the_advisor_shows_each_finding_with_its_requests(sandbox: Sandbox, api: Api) -> None:
    unused = page(sandbox, "advisor")
    assert ("No requests yet" in unused, "Nothing found" in unused) == (True, False)
    api.payout()
    assert "Nothing found so far" in page(sandbox, "advisor")
    api.payout()
    html = page(sandbox, "advisor")
    assert "without an idempotency key" in html
    for request in sandbox.requests:
        assert f"/_sandbox/requests/{request.request_id}" in html


def test_the_advisor_tells_a_mistake_once_with_every_case_and_its_webhooks(
    sandbox: Sandbox, api: Api
) -> None:
    for number in range(9):
        payout = api.payout(reference=f"r-{number}", idempotency_key=f"key-{number:05d}").data["id"]
        event = WebhookTried(sandbox.clock.now(), f"wh_{number}", payout, "payout.completed", 204, None)
        sandbox.journal.add(event)
    sandbox.advance(61)
    api.get("/utils/status/payment/method/m/BJ")
    html = page(sandbox, "advisor")
    assert html.count("Deliveries are not signed") == 1
    assert "never read back 9 ×" in text_of(html)
    assert html.count('href="/_sandbox/payouts/po_') == 8 + 1, "some records, and the first in the example"
    assert html.count(">Dismiss<") == 1
    json_type = {"Content-Type": "application/json"}
    call = re.findall(r"advice/finding_\d+/dismiss", html)[0]
    sandbox.handle("POST", f"/_sandbox/api/{call}", json_type, b"{}")
    assert "Nothing found so far" in page(sandbox, "advisor"), "all nine are dismissed"


@pytest.mark.parametrize("name", sorted(PROFILES))
def test_assumptions_name_every_gap_and_every_switch(name: str) -> None:
    gaps = assumptions(PROFILES[name])
    letters = [gap.letter for gap in gaps]
    expected = [chr(code) for code in range(ord("A"), ord("Z") + 1)] + ["AA", "AB", "AC", "AD", "AE", "AF"]
    assert letters[:-1] == expected
    shown = {switch.name for gap in gaps for switch in gap.switches}
    assert shown == {field.name for field in attrs.fields(Profile)} - {"name"}
    assert any(gap.differs for gap in gaps) == (name != "observed")


def test_letters_mean_what_the_interface_document_says() -> None:
    table = Path("docs/interface.md").read_text().split("## What the interface does not show")[1]
    rows = dict(re.findall(r"^\| ([A-Z]{1,2}) \| ([^|]+) \|", table, re.MULTILINE))
    for gap in assumptions(PROFILES["observed"])[:-1]:
        words = set(re.findall(r"[a-z_]{4,}", gap.gap.lower()))
        assert words & set(re.findall(r"[a-z_]{4,}", rows[gap.letter].lower())) or gap.letter in "IQ", gap


def test_no_page_grows_without_bound(sandbox: Sandbox, api: Api) -> None:
    for number in range(150):
        api.payout(reference=f"r-{number}", webhook_url="http://127.0.0.1:9/hook", description="d" * 500)
        session = api.checkout().data["checkout"]["id"]
        sandbox.pay(session, outcome="action:collect_otp", phone="+22990000077")
        sandbox.on("payouts.list", status=f"r-{number}").respond("reset")
        api.sync(sandbox.books.payouts()[-1].id)
        api.payout(description=str(number))
        api.payout(description=str(number))  # a finding each
    for _ in range(80):  # lines as long as they come
        api.payout(reference="r" * 191, method="", instrument={"type": "phone"}, metadata=[], description=7)
        api.get(f"/nowhere/{'p' * 900}")
    for number in range(12):
        api.payout(reference="same", idempotency_key=f"key-{number:05d}")
        _, payment = find_payment(sandbox._core.world, sandbox.books.payments()[-1].id)
        sandbox.pay(payment.id, outcome="fail:CUSTOMER_DECLINED")

    records = [f"payouts/{sandbox.books.payouts()[0].id}", f"payments/{payment.id}", "webhooks/wh_00000001"]
    searches = ["?find=is:request", "payouts?status=pending", "webhooks?state=waiting"]
    for path in [*(name for name, _ in NAV), *records, *searches]:
        html = page(sandbox, path)
        loaded = set(re.findall(r'(?:href|src)="(/_sandbox/assets/[^"?]*)', html))
        assets = sum(len(sandbox.handle("GET", asset).body) for asset in loaded)
        assert len(html.encode()) + assets < MOST, (path, len(html), assets)


def test_a_long_body_is_shown_from_its_beginning_with_a_way_to_all_of_it(sandbox: Sandbox, api: Api) -> None:
    for number in range(100):
        api.payout(reference=f"r-{number}")
    headers = {"Authorization": f"Bearer {api.key}", "X-Long": "h" * 8_000}
    sandbox.handle("GET", f"/v1/payouts?per_page=100&q={'q' * 8_000}", headers)
    request = sandbox.requests[-1].request_id
    html = page(sandbox, f"requests/{request}?reveal=1")
    assert len(html.encode()) < 30_000
    assert "The first 8,000 of" in html
    assert f"/_sandbox/api/requests/{request}?reveal=1" in html
    assert "The first 8,000 of" not in page(sandbox, f"requests/{sandbox.requests[0].request_id}")


def test_pages_and_what_makes_them_are_imported_with_the_first_page() -> None:
    code = (
        "import sys; from payments_async.sandbox import Sandbox\n"
        "with Sandbox() as sandbox: sandbox.handle('GET', '/v1/payouts')\n"
        "late = ('inspector', 'control_api', 'jinja2', 'segno')\n"
        "print([module for module in sys.modules if any(name in module for name in late)])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_payment_of_the_api_has_no_page_for_the_payer(sandbox: Sandbox, api: Api) -> None:
    api.post("/payment/intents", INTENT)
    api.post("/payouts", PAYOUT)
    shown = text_of(page(sandbox, "payments"))
    assert "Payer's page" not in shown
    assert "No attempts yet" in text_of(page(sandbox, f"payments/{sandbox.books.payments()[0].id}"))


def test_a_limit_of_nothing_is_full() -> None:
    sandbox = Sandbox(limits=SandboxLimits(reads=0, writes=5))
    api = Api(sandbox, sandbox.api_key)
    api.payout()
    assert api.get("/payouts").status == 429
    shown = text_of(page(sandbox, "limits"))
    assert shown.index("reads") < shown.index("writes")
