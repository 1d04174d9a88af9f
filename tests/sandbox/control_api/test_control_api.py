"""The control API: everything the handle can do, for this machine's own programs and pages only."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import attrs
import pytest

from payments_async import Instrument
from payments_async.sandbox import Sandbox, SandboxLimits, VirtualClock
from payments_async.sandbox._common.values import Request
from payments_async.sandbox._control_api.routes import ROUTES
from payments_async.sandbox._journal import Journal
from payments_sync import Payments
from tests.sandbox.raw_requests import INTENT, PAYOUT, TRIED, Api, Got

ORIGIN = "http://127.0.0.1:7788"
JSON = {"Content-Type": "application/json"}


@attrs.frozen
class Control:
    """Asks the control API in this process."""

    sandbox: Sandbox

    def ask(self, method: str, path: str, body: object = None, headers: Mapping[str, str] = JSON) -> Got:
        raw = b"" if body is None else json.dumps(body).encode()
        return Got(self.sandbox.handle(method, f"/_sandbox/api/{path}", headers, raw))

    def get(self, path: str) -> Any:
        got = self.ask("GET", path)
        assert got.status == 200, got.json
        return got.json

    def post(self, path: str, body: object = None, status: int = 200) -> Any:
        got = self.ask("POST", path, body)
        assert got.status == status, got.json
        return got.json

    def refused(self, method: str, path: str, body: object = None) -> tuple[int, str]:
        got = self.ask(method, path, body)
        return got.status, got.json["message"]


@pytest.fixture
def control(sandbox: Sandbox) -> Control:
    return Control(sandbox)


# --- who may ask --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "LocalHost", "[::1]"])
def test_our_own_names_are_answered(name: str) -> None:
    with Sandbox() as sandbox:
        port = sandbox.origin.rpartition(":")[2]
        headers = {"Host": f"{name}:{port}", "Origin": f"http://{name}:{port}", **JSON}
        assert sandbox.handle("POST", "/_sandbox/api/clock/freeze", headers).status == 200


@pytest.mark.parametrize(
    ("method", "headers"),
    [
        ("GET", {"Origin": "https://evil.test"}),
        ("POST", {"Origin": "null"}),
        ("DELETE", {"Origin": "https://sandbox.test"}),
        ("POST", {"Origin": "http://sandbox.test:81"}),
        ("GET", {"Sec-Fetch-Site": "cross-site"}),
        ("DELETE", {"Sec-Fetch-Site": "same-site"}),
    ],
)
def test_another_sites_page_is_refused(control: Control, method: str, headers: dict[str, str]) -> None:
    control.sandbox.on("payouts.create").respond("reset")
    got = control.ask(method, "rules", headers={**JSON, **headers})
    assert got.status == 403
    assert "Another site" in got.json["message"]
    assert len(control.sandbox.rules) == 1


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""]
)
def test_only_json_changes_anything(control: Control, kind: str) -> None:
    assert control.ask("POST", "reset", headers={"Content-Type": kind}).status == 415


def test_bodies_have_a_largest_size(control: Control) -> None:
    assert control.refused("POST", "rules", {"words": "x" * 70_000})[0] == 413


@pytest.mark.parametrize("body", [b"{", b"[]", b'"text"', b"\xff"])
def test_a_body_that_is_no_object_is_refused(control: Control, body: bytes) -> None:
    got = Got(control.sandbox.handle("POST", "/_sandbox/api/rules", JSON, body))
    assert (got.status, "JSON" in got.json["message"]) == (400, True)


def test_controls_cost_no_limit_and_are_not_in_the_log() -> None:
    control = Control(Sandbox(limits=SandboxLimits(writes=1, reads=1)))
    for _ in range(5):
        control.get("state")
    control.post("clock/advance", {"by": 1})
    assert control.sandbox.requests == []
    assert Api(control.sandbox, control.sandbox.api_key).get("/payouts").status == 200


# --- finding one's way --------------------------------------------------------------------------


def test_the_index_lists_every_route_with_what_it_does(control: Control) -> None:
    listed = control.get("")["routes"]
    assert [(one["method"], one["path"]) for one in listed] == [(one.method, one.path) for one in ROUTES]
    assert all(one["what"] for one in listed)
    assert len({(one.method, one.path) for one in ROUTES}) == len(ROUTES)


def test_an_address_without_anything_and_a_method_that_is_not_possible(control: Control) -> None:
    assert control.refused("GET", "nothing/here")[0] == 404
    status, message = control.refused("DELETE", "clock")
    assert (status, "GET is" in message) == (405, True)


def test_the_state_tells_address_profile_clock_and_keys(control: Control) -> None:
    state = control.get("state")
    assert state["base_url"] == "http://sandbox.test/v1"
    assert (state["profile"], state["clock"]["frozen"]) == ("observed", True)
    assert state["journal"] == {"first": 1, "last": 0, "changes": 0}
    assert [key["status"] for key in state["keys"]] == ["active"]


# --- what is wrong ------------------------------------------------------------------------------

REFUSED: list[tuple[str, dict[str, object], str | None]] = [
    ("rules", {"words": "reset"}, "operation"),
    ("rules", {"operation": "*"}, "words"),
    ("rules", {"operation": "*", "words": 7}, "words"),
    ("rules", {"operation": "*", "words": "reset", "times": -1}, "times"),
    ("rules", {"operation": "*", "words": "reset", "times": True}, "times"),
    ("rules", {"operation": "*", "words": "reset", "times": 10**40}, "times"),
    ("rules", {"operation": "*", "words": "reset", "after": 1_000_001}, "after"),
    ("rules", {"operation": "*", "words": "reset", "match": [1]}, "match"),
    ("rules", {"operation": "*", "words": "reset", "match": {"api_key": "x"}}, "match"),
    ("rules", {"operation": "*", "words": "reset", "match": {"refrence": "x"}}, "match.refrence"),
    ("rules", {"operation": "*", "words": "reset", "as": "else"}, "as"),
    ("rules", {"operation": "*", "words": "reset", "word": "x"}, "word"),
    ("rules", {"operation": "*", "words": " "}, None),
    ("rules", {"operation": "payouts.create", "words": "fail"}, None),
    ("rules", {"operation": "payouts.create", "words": "expire"}, None),
    ("payments/{intent}/refund", {"amount": "20 XOF"}, "amount"),
    ("payments/{intent}/refund", {"amount": "-1"}, "amount"),
    ("payments/{intent}/refund", {"amount": -1}, "amount"),
    ("payments/{intent}/refund", {"pending": 1}, "pending"),
    ("payments/{intent}/refund", {"sum": 1}, "sum"),
    ("keys", {"status": "activ"}, "status"),
    ("keys", {"allowlist": ["no"]}, "allowlist"),
    ("keys", {"allowlist": "x"}, "allowlist"),
    ("clock/advance", {"by": None}, "by"),
    ("clock/advance", {"by": "soon"}, None),
    ("clock/advance", {"by": -1}, "by"),
    ("clock/advance", {"by": True}, "by"),
    ("clock/advance", {"by": 1e12}, "by"),
    ("clock/advance", {"by": "9999999h"}, None),
]
"""Path, body, and the field that is named: with 422, or with 400 and no field for words that are unknown."""


@pytest.mark.parametrize(("path", "body", "field"), REFUSED)
def test_what_is_wrong_is_named_and_changes_nothing(
    control: Control, api: Api, path: str, body: dict[str, object], field: str | None
) -> None:
    intent = api.post("/payment/intents", {**TRIED, "metadata": {"sandbox_scenario": "immediate"}}).data["id"]
    before = control.get("clock")
    got = control.ask("POST", path.format(intent=intent), body)
    assert (got.status, got.json.get("field")) == (400 if field is None else 422, field)
    assert (control.sandbox.rules, control.get("clock"), len(control.get("keys"))) == ([], before, 1)
    assert control.get(f"payments/{intent}")["refunds"] == []


@pytest.mark.parametrize(
    ("body", "status", "near"),
    [
        ({"operation": "payouts.create", "words": "lost_respons"}, 400, "lost_response"),
        ({"operation": "payouts.creat", "words": "reset"}, 400, "payouts.create"),
        ({"operation": "payouts.create", "word": "reset"}, 422, "words"),
    ],
)
def test_an_unknown_word_is_answered_with_the_near_ones(
    control: Control, body: object, status: int, near: str
) -> None:
    got = control.ask("POST", "rules", body)
    assert (got.status, near in got.json["near"]) == (status, True)


# --- rules --------------------------------------------------------------------------------------


def test_a_fault_is_set_by_words_listed_and_removed(control: Control, api: Api) -> None:
    body = {"operation": "payouts.create", "words": "http:503", "times": 2, "match": {"reference": "r-1"}}
    rule = control.post("rules", body, status=201)
    assert (rule["words"], rule["remaining"], rule["match"]) == ("http:503*2", 2, {"reference": "r-1"})
    assert api.post("/payouts", {**PAYOUT, "reference": "r-1"}).status == 503
    assert control.get("rules")["rules"][0]["remaining"] == 1
    assert control.ask("DELETE", f"rules/{rule['id']}").status == 200
    assert control.get("rules") == {"rules": []}
    assert api.post("/payouts", {**PAYOUT, "reference": "r-1"}).status == 201


def test_a_rule_is_used_up_and_says_so(control: Control, api: Api) -> None:
    control.post("rules", {"operation": "*", "words": "429:3 slow:2s"}, status=201)
    assert api.get("/payouts").status == 429
    api.get("/payouts")
    (rule,) = control.get("rules")["rules"]
    assert (rule["used_up"], rule["remaining"], rule["words"]) == (True, 0, "429:3s*1 slow:2s*1 after 1")


def test_an_outcome_is_set_by_words(control: Control, api: Api) -> None:
    body = {"operation": "payouts.create", "words": "fail:NO_FUNDS after=0s", "times": 1}
    rule = control.post("rules", body, status=201)
    assert (rule["words"], rule["remaining"]) == ("fail:NO_FUNDS after=0s", 1)
    assert api.post("/payouts", PAYOUT).data["failure"]["code"]["value"] == "NO_FUNDS"
    assert control.get("rules")["rules"][0]["remaining"] == 0


def test_an_outcome_for_all_has_no_count_of_what_remains(control: Control) -> None:
    body = {"operation": "payment_intents.create", "words": "failover:2 reads=3"}
    assert control.post("rules", body, status=201)["remaining"] is None
    always = {"operation": "payouts.list", "words": "reset", "times": None}
    rule = control.post("rules", always, status=201)
    assert (rule["remaining"], rule["words"]) == (None, "reset (every time)")


def test_hang_is_a_fault_unless_it_is_said_to_be_an_outcome(control: Control, api: Api) -> None:
    control.post("rules", {"operation": "payouts.create", "words": "hang", "as": "outcome"}, status=201)
    payout = api.post("/payouts", PAYOUT).data
    control.sandbox.advance(10_000)
    assert control.get(f"payouts/{payout['id']}")["status"] == "processing"
    fault = control.post("rules", {"operation": "payouts.create", "words": "hang"}, status=201)
    assert fault["words"] == "hang*1"


def test_a_rule_for_one_key_leaves_the_others_alone(control: Control, api: Api, stranger: Api) -> None:
    body = {"operation": "payouts.list", "words": "http:500", "api_key": api.key}
    rule = control.post("rules", body, status=201)
    assert rule["key"]
    assert api.key not in json.dumps(rule)
    assert (stranger.get("/payouts").status, api.get("/payouts").status) == (200, 500)


def test_faults_outcomes_and_webhook_words_may_stand_together(control: Control, api: Api) -> None:
    body = {
        "operation": "payouts.create",
        "words": "reset, fail:NO_FUNDS after=0s; delay:30s duplicate:2 drop",
    }
    rule = control.post("rules", body, status=201)
    assert rule["words"] == "reset*1 fail:NO_FUNDS after=0s delay:30s duplicate:2 drop"
    assert api.payout(webhook_url="http://127.0.0.1:9/").status == 0
    assert api.payout(webhook_url="http://127.0.0.1:9/").data["status"] == "failed"
    assert {one["state"] for one in control.get("webhooks")["webhooks"]} == {"dropped"}


def test_all_rules_are_forgotten_at_once_and_an_unknown_one_is_404(control: Control) -> None:
    control.sandbox.on("*").respond("reset")
    control.sandbox.on("*").respond("empty")
    assert control.ask("DELETE", "rules").status == 200
    assert control.sandbox.rules == []
    assert control.refused("DELETE", "rules/rule_9") == (404, "no rule 'rule_9'")


# --- records ------------------------------------------------------------------------------------


def test_payouts_are_listed_read_and_settled(control: Control, api: Api) -> None:
    first, second = api.post("/payouts", PAYOUT).data["id"], api.post("/payouts", PAYOUT).data["id"]
    assert [one["id"] for one in control.get("payouts")["payouts"]] == [second, first]
    assert [one["id"] for one in control.get("payouts?limit=1")["payouts"]] == [second]
    control.post(f"records/{first}/settle", {"outcome": "fail:NO_FUNDS"})
    assert control.get(f"payouts/{first}")["failure"]["code"]["value"] == "NO_FUNDS"
    assert [one["id"] for one in control.get("payouts?status=failed")["payouts"]] == [first]
    assert control.refused("POST", f"records/{first}/settle")[0] == 422
    assert control.refused("GET", "payouts/po_none")[0] == 404
    assert control.refused("POST", "records/po_none/settle")[0] == 404


def test_account_data_is_masked_unless_it_is_asked_for(control: Control, api: Api) -> None:
    payout = api.post("/payouts", {**PAYOUT, "customer": {"email": "ada@example.test"}}).data["id"]
    request = control.sandbox.requests[-1].request_id
    for path in (f"payouts/{payout}", "payouts", f"requests/{request}"):
        assert "22990000000" not in json.dumps(control.get(path), default=str)
        assert "ada@example.test" not in json.dumps(control.get(path), default=str)
        assert "+22990000000" in json.dumps(control.get(f"{path}?reveal=1"), default=str)


def test_a_held_payout_ends_only_when_it_is_settled(control: Control, api: Api) -> None:
    payout = api.post("/payouts", PAYOUT).data["id"]
    assert control.post(f"records/{payout}/hold") == {"id": payout, "outcome": "hang"}
    control.sandbox.advance(1_000)
    assert control.get(f"payouts/{payout}")["status"] == "processing"
    control.post(f"records/{payout}/settle")
    assert control.get(f"payouts/{payout}")["status"] == "completed"
    assert control.refused("POST", f"records/{payout}/hold")[0] == 422
    assert control.refused("POST", "records/po_none/hold")[0] == 404


def test_a_held_attempt_ends_only_when_it_is_settled(control: Control, api: Api) -> None:
    intent = api.post("/payment/intents", TRIED).data["id"]
    untried = api.post("/payment/intents", INTENT).data["id"]
    control.post(f"records/{intent}/hold")
    control.sandbox.advance(1_000)
    (attempt,) = control.get(f"payments/{intent}")["attempts"]
    assert attempt["status"] == "processing"
    control.post(f"records/{attempt['id']}/settle")
    assert control.get(f"payments/{intent}")["status"] == "completed"
    assert control.refused("POST", f"records/{untried}/hold")[0] == 422


def test_a_payment_is_paid_declined_and_refunded(control: Control, api: Api) -> None:
    session = api.post("/payment/checkouts", INTENT).data["checkout"]["id"]
    declined = control.post(f"payments/{session}/pay", {"outcome": "fail:CUSTOMER_DECLINED", "method": "m"})
    assert [one["status"] for one in declined["attempts"]] == ["failed"]
    paid = control.post(f"payments/{session}/pay", {"phone": "+22990000000", "country": "BJ"})
    assert (paid["status"], paid["session"]["id"]) == ("completed", session)
    refund = control.post(f"payments/{session}/refund", {"amount": 20, "pending": True}, status=201)
    assert control.get(f"payments/{session}")["refunds"][0] == {
        "id": refund["id"],
        "amount": 20,
        "pending": True,
    }
    control.post(f"records/{refund['id']}/settle")
    control.post(f"payments/{session}/refund", status=201)
    assert [one["status"] for one in control.get("payments?status=refunded")["payments"]] == ["refunded"]
    assert control.get("payments?status=pending")["payments"] == []
    assert control.refused("POST", f"payments/{session}/pay")[0] == 422
    assert control.refused("POST", "payments/pi_none/pay")[0] == 404


@pytest.mark.parametrize("amount", [20, "20", "20.00"])
def test_a_refund_takes_its_amount_as_a_number_or_as_text(control: Control, api: Api, amount: object) -> None:
    intent = api.post("/payment/intents", {**TRIED, "metadata": {"sandbox_scenario": "immediate"}}).data["id"]
    control.post(f"payments/{intent}/refund", {"amount": amount}, status=201)
    assert str(control.get("payments")["payments"][0]["status"]) == "partially_refunded"


# --- webhooks -----------------------------------------------------------------------------------


def test_a_forged_webhook_finds_its_record_by_reference(control: Control, api: Api) -> None:
    payout = api.post("/payouts", {**PAYOUT, "reference": "r-1"}).data["id"]
    payment = api.post("/payment/intents", INTENT).data["id"]
    name = control.get(f"payments/{payment}")["reference"]
    for reference, record in (("r-1", payout), (name, payment)):
        body = {"record": reference, "url": "http://127.0.0.1:9/hook"}
        assert control.post("webhooks/forge", body, status=201)["record"] == record
    assert control.refused("POST", "webhooks/forge", {"record": "r-2"})[0] == 404


def test_a_forged_webhook_is_of_the_record_with_the_id_though_another_has_it_as_its_reference(
    control: Control, api: Api
) -> None:
    url = "http://127.0.0.1:9/hook"
    payment = api.post("/payment/intents", INTENT).data["id"]
    checkout = api.post("/payment/checkouts", INTENT).data
    ids = [api.payout().data["id"], payment, checkout["checkout"]["id"]]
    for each in ids:
        api.payout(reference=each)
    forged = [control.post("webhooks/forge", {"record": each, "url": url}, status=201) for each in ids]
    assert [each["record"] for each in forged] == [ids[0], payment, checkout["payment"]["id"]]


def test_webhooks_are_listed_sent_again_and_forged(control: Control, api: Api) -> None:
    body = {**PAYOUT, "webhook_url": "http://127.0.0.1:9/hook?token=secret"}
    payout = api.post("/payouts", body).data["id"]
    (hook,) = control.get("webhooks")["webhooks"]
    assert (hook["event"], hook["record"], hook["state"]) == ("payout.created", payout, "waiting")
    assert "secret" not in json.dumps(hook)
    again = control.post(f"webhooks/{hook['id']}/resend", status=201)
    assert (again["origin"], again["repeats"]) == ("resent", hook["id"])
    forged = control.post("webhooks/forge", {"record": payout, "event": "payout.completed"}, status=201)
    assert (forged["origin"], forged["event"]) == ("forged", "payout.completed")
    assert len(control.get("webhooks")["webhooks"]) == 3
    assert control.refused("POST", "webhooks/wh_none/resend")[0] == 404
    api.payout(webhook_url="https://shop.example/hook/s3cr3t")
    refused = control.sandbox.webhooks[-1].id
    status, message = control.refused("POST", f"webhooks/{refused}/resend")
    assert (status, "allow_webhooks_to=('shop.example',)" in message) == (409, True)
    assert control.sandbox.webhooks[-1].id == refused
    wrong = control.ask("POST", "webhooks/forge", {"record": payout, "event": "payout.complete"})
    assert (wrong.status, wrong.json["field"]) == (400, "event")
    assert "payout.completed" in wrong.json["near"]
    unheard = api.payout().data["id"]
    nowhere = control.ask("POST", "webhooks/forge", {"record": unheard})
    assert (nowhere.status, nowhere.json["field"]) == (422, "url")


# --- time, limits, keys -------------------------------------------------------------------------


def test_the_clock_is_read_advanced_and_tells_what_fell_due(control: Control, api: Api) -> None:
    payout = api.post("/payouts", PAYOUT).data["id"]
    before = control.get("clock")["seconds"]
    after = control.post("clock/advance", {"by": "1m"})
    assert after["seconds"] - before == 60
    assert [(one["id"], one["after"]) for one in after["changes"]] == [
        (payout, "processing"),
        (payout, "completed"),
    ]
    assert control.post("clock/advance", {"by": 0.5})["changed"] == 0


def test_the_clock_is_sped_up_and_frozen(control: Control) -> None:
    assert control.post("clock/speed", {"speed": 60})["speed"] == 60
    assert control.post("clock/freeze")["frozen"]
    now = control.get("clock")["seconds"]
    assert control.get("clock")["seconds"] == now
    assert control.refused("POST", "clock/speed", {"speed": 1e9})[0] == 422


def test_a_clock_of_ones_own_keeps_its_speed() -> None:
    class Own:
        def now(self) -> float:
            return 1_000.0

        def advance(self, seconds: float) -> None:
            raise NotImplementedError

        async def sleep(self, seconds: float) -> None:
            raise NotImplementedError

    control = Control(Sandbox(clock=Own()))
    assert control.get("clock")["speed"] is None
    assert control.refused("POST", "clock/freeze")[0] == 409


def test_limits_show_how_full_each_window_is() -> None:
    control = Control(Sandbox(clock=VirtualClock.frozen(), limits=SandboxLimits(writes=5, reads=None)))
    own = Api(control.sandbox, control.sandbox.api_key)
    payout = own.post("/payouts", PAYOUT).data["id"]
    own.get(f"/payouts/{payout}/sync")
    shown = {one["scope"]: (one["used"], one["limit"]) for one in control.get("limits")["limits"]}
    assert shown == {"writes": (1, 5), "diagnostics": (1, 6_000), f"record {payout}": (1, 12)}
    control.sandbox.advance(60)
    assert all(one["used"] == 0 for one in control.get("limits")["limits"])


def test_sliding_windows_show_how_full_they_are() -> None:
    limits = SandboxLimits(window="sliding", diagnostics_per_record=None)
    control = Control(Sandbox(clock=VirtualClock.frozen(), limits=limits))
    own = Api(control.sandbox, control.sandbox.api_key)
    own.post("/payouts", PAYOUT)
    assert {one["scope"]: one["used"] for one in control.get("limits")["limits"]}["writes"] == 1
    control.sandbox.advance(60)
    assert {one["scope"]: one["used"] for one in control.get("limits")["limits"]}["writes"] == 0


def test_a_whole_key_is_given_at_its_creation_only(control: Control) -> None:
    made = control.post("keys", {"status": "active", "allowlist": ["127.0.0.0/8"]}, status=201)["api_key"]
    assert Api(control.sandbox, made).get("/payouts").status == 200
    keys = [control.sandbox.api_key, made]
    for route in ROUTES:
        if route.method == "GET" and "{" not in route.path and route.path != "stream":
            text = json.dumps(control.get(route.path), default=str)
            assert not any(key in text for key in keys), route.path
    request = control.sandbox.requests[-1].request_id
    for path in (f"requests/{request}?reveal=1", f"requests/{request}/code?as=curl"):
        assert not any(key in json.dumps(control.get(path), default=str) for key in keys)
    shown = control.get("keys")[1]
    assert (shown["hint"][-4:], shown["allowlist"]) == (made[-4:], ["127.0.0.0/8"])


# --- requests -----------------------------------------------------------------------------------


def test_requests_are_listed_newest_first_and_read_in_full(control: Control, api: Api) -> None:
    api.post("/payouts", PAYOUT, idempotency_key="key-00001")
    api.get("/payouts")
    listed = control.get("requests")["requests"]
    assert [one["operation"] for one in listed] == ["payouts.list", "payouts.create"]
    assert len(control.get("requests?operation=payouts.list")["requests"]) == 1
    whole = control.get(f"requests/{listed[1]['id']}")
    assert (whole["body"]["amount"], whole["answer"]["status"]) == (50, 201)
    assert whole["headers"]["x-idempotency-key"] == "key-00001"
    assert "authorization" not in whole["headers"]
    assert control.refused("GET", "requests/req_none")[0] == 404


def test_of_a_body_that_is_no_json_its_size_is_shown(control: Control, api: Api) -> None:
    api.post("/payouts", b"<xml/>")
    request = control.sandbox.requests[-1].request_id
    assert control.get(f"requests/{request}")["body"] == {"unreadable": "6 bytes that are not JSON"}


def test_a_request_is_sent_again_with_its_key(control: Control, api: Api) -> None:
    first = api.post("/payouts", PAYOUT, idempotency_key="key-00001").data["id"]
    request = control.sandbox.requests[-1].request_id
    again = control.post(f"requests/{request}/replay")
    assert (again["status"], again["replayed"], again["replay_of"]) == (201, True, request)
    assert [entry.id for entry in control.sandbox.books.payouts()] == [first]


def test_what_cannot_be_sent_again_says_why(control: Control, api: Api) -> None:
    Api(control.sandbox, "sk_sandbox_unknown").get("/payouts")
    unknown = control.sandbox.requests[-1].request_id
    assert control.refused("POST", f"requests/{unknown}/replay")[0] == 409
    control.sandbox._journal = Journal(body_bytes=0)
    api.post("/payouts", PAYOUT)
    gone = control.sandbox.requests[-1].request_id
    assert control.refused("POST", f"requests/{gone}/replay")[0] == 410
    assert control.refused("GET", f"requests/{gone}/code")[0] == 410
    assert control.get(f"requests/{gone}")["answer"] is None


def test_the_journal_is_read_from_a_number_on(control: Control, api: Api) -> None:
    api.post("/payouts", {**PAYOUT, "webhook_url": "http://127.0.0.1:9/"})
    journal = control.get("journal?after=1")
    assert [one["seq"] for one in journal["entries"]] == list(range(2, journal["last"] + 1))
    assert {one["kind"] for one in control.get("journal")["entries"]} == {"change", "delivery", "request"}
    got = control.ask("GET", "journal?after=x")
    assert (got.status, got.json["field"]) == (422, "after")


def test_start_over_keeps_keys_and_time(control: Control, api: Api) -> None:
    api.post("/payouts", {**PAYOUT, "reference": "r-1"})
    control.sandbox.on("*").respond("reset")
    now = control.get("clock")
    control.post("reset")
    assert control.get("clock") == now
    assert control.sandbox.rules == []
    assert control.sandbox.requests == []
    assert control.sandbox.books.payouts() == []
    control.sandbox.advance(100)  # no timer of what was there is left
    assert control.sandbox.entries() == []
    assert api.post("/payouts", {**PAYOUT, "reference": "r-1"}).status == 201


def test_advice_and_assumptions_are_given_as_data(control: Control, api: Api) -> None:
    for _ in range(2):
        api.post("/payouts", PAYOUT)
    (finding,) = control.get("advice")["findings"]
    assert finding["rule"] == "post_without_key"
    gaps = control.get("assumptions")["gaps"]
    assert [gap["letter"] for gap in gaps][:3] == ["A", "B", "C"]


def test_a_page_gets_refusals_without_an_error_status(control: Control) -> None:
    got = control.ask("POST", "rules?refusals=200", {"operation": "*", "words": "rese"})
    assert (got.status, got.json["refused"], "reset" in got.json["near"]) == (200, 400, True)
    done = control.ask("POST", "clock/freeze?refusals=200")
    assert "refused" not in done.json


# --- code that does what it says ----------------------------------------------------------------


def test_copied_code_of_our_own_client_is_answered_from_the_first_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with Sandbox() as sandbox, Payments(sandbox.api_key, base_url=sandbox.base_url) as client:
        monkeypatch.setenv("PAYMENTS_API_KEY", sandbox.api_key)
        wallet = Instrument.phone("+22990000000", "BJ")
        client.payouts.create(amount="10.10", currency="XOF", method="m", instrument=wallet, reference="r-1")
        code = Control(sandbox).get(f"requests/{sandbox.requests[0].request_id}/code?as=sync&reveal=1")[
            "code"
        ]
        exec(compile(code, "copied", "exec"), {"__name__": "copied"})
        assert [request.replayed for request in sandbox.requests] == [False, True]


def test_a_body_that_is_no_object_gives_code_without_it(control: Control, api: Api) -> None:
    for body in (b"{", b"[1]"):
        api.post("/payouts", body)
        code = control.get(f"requests/{control.sandbox.requests[-1].request_id}/code")["code"]
        assert "client.request('POST', '/payouts')" in code


def test_the_journal_tells_how_each_try_of_a_webhook_went() -> None:
    with Sandbox(clock=VirtualClock.frozen()) as sandbox:
        control, api = Control(sandbox), Api(sandbox, sandbox.api_key)
        api.payout(webhook_url="http://127.0.0.1:9/hook")
        api.payout(webhook_url="https://shop.example.com/hook")
        sandbox.wait_for_webhooks()
        tried = [one for one in control.get("journal")["entries"] if one["kind"] == "try"]
    assert [(one["event"], one["status"], one["accepted"]) for one in tried] == [
        ("payout.created", None, False)
    ] * 2
    assert all(one["error"] for one in tried)


def test_a_request_is_not_sent_again_under_a_key_that_is_gone() -> None:
    with pytest.raises(LookupError, match="no API key"):
        Sandbox().send_again(Request("GET", "/v1/payouts"), "unknown")


# --- why, and how much ----------------------------------------------------------------------------


def test_a_request_says_why_it_failed(control: Control, api: Api) -> None:
    api.payout(amount=0)
    api.payout(reference="r-1")
    paid, refused = (control.get(f"requests/{one['id']}") for one in control.get("requests")["requests"])
    assert (paid["reason"], refused["reason"].partition(":")[0]) == (None, "amount")


def test_the_books_are_sums_by_currency(control: Control, api: Api) -> None:
    assert control.get("books") == {"books": []}
    api.payout(amount=10.5, reference="r-1")
    api.payout(amount=7, reference="r-2", scenario="fail:INVALID_RECIPIENT")
    control.sandbox.pay(api.intent(amount=3).data["id"])
    api.payout(currency="GHS", amount=1, reference="r-3")
    assert [(one["paid_out"], one["on_its_way"]) for one in control.get("books")["books"]] == [
        (0, 1),
        (0, Decimal("10.5") + 7),
    ]
    control.sandbox.advance(60)
    ghs, xof = control.get("books")["books"]
    assert (ghs["currency"], ghs["paid_out"], ghs["collected"], ghs["payments"]) == ("GHS", 1, 0, {})
    assert (xof["paid_out"], xof["payouts"]) == (Decimal("10.5"), {"completed": 1, "failed": 1})
    assert xof["on_its_way"] == 0
    assert (xof["collected"], xof["payments"]) == (3, {"completed": 1})
