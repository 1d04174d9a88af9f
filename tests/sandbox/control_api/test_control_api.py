"""The control API: everything the handle can do, for this machine's own programs and pages only."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import attrs
import pytest

from payments_async.sandbox import Sandbox, SandboxLimits
from tests.sandbox.raw_requests import INTENT, PAYOUT, ROUTES, TRIED, Api, Got, Journal

JSON = {"Content-Type": "application/json"}
HOOK = "http://127.0.0.1:9/hook"


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
    status, message = control.refused("DELETE", "state")
    assert (status, "GET is" in message) == (405, True)


def test_the_state_tells_address_profile_clock_and_keys(control: Control) -> None:
    state = control.get("state")
    assert state["base_url"] == "http://sandbox.test/v1"
    assert (state["profile"], state["clock"]["frozen"]) == ("observed", True)
    assert state["journal"] == {"first": 1, "last": 0, "changes": 0}
    assert [key["status"] for key in state["keys"]] == ["active"]


# --- what is wrong ------------------------------------------------------------------------------

REFUSED: list[tuple[str, dict[str, object], int, str | None]] = [
    ("rules", {"words": "reset"}, 422, "operation"),
    ("rules", {"operation": "*"}, 422, "words"),
    ("rules", {"operation": "*", "words": 7}, 422, "words"),
    ("rules", {"operation": "*", "words": "reset", "times": -1}, 422, "times"),
    ("rules", {"operation": "*", "words": "reset", "times": True}, 422, "times"),
    ("rules", {"operation": "*", "words": "reset", "times": 10**40}, 422, "times"),
    ("rules", {"operation": "*", "words": "reset", "after": 1_000_001}, 422, "after"),
    ("rules", {"operation": "*", "words": "reset", "match": [1]}, 422, "match"),
    ("rules", {"operation": "*", "words": "reset", "match": {"api_key": "x"}}, 422, "match"),
    ("rules", {"operation": "*", "words": "reset", "sense": "else"}, 422, "sense"),
    ("rules", {"operation": "*", "words": "reset", "word": "x"}, 422, "word"),
    ("rules", {"operation": "*", "words": " "}, 400, None),
    ("rules", {"operation": "payouts.create", "words": "fail"}, 400, None),
    ("rules", {"operation": "payouts.create", "words": "expire"}, 400, None),
    ("payments/{intent}/refund", {"amount": "20 XOF"}, 422, "amount"),
    ("payments/{intent}/refund", {"amount": "-1"}, 422, None),
    ("payments/{intent}/refund", {"amount": True}, 422, "amount"),
    ("payments/{intent}/refund", {"pending": 2}, 422, "pending"),
    ("payments/{intent}/refund", {"sum": 1}, 422, "sum"),
    ("keys", {"status": "activ"}, 422, "status"),
    ("keys", {"allowlist": ["no"]}, 422, None),
    ("keys", {"allowlist": "x"}, 422, "allowlist"),
    ("clock/advance", {}, 422, "by"),
    ("clock/advance", {"by": "soon"}, 400, None),
    ("clock/advance", {"by": -1}, 400, None),
    ("clock/advance", {"by": True}, 422, "by"),
    ("clock/advance", {"by": "9999999h"}, 400, None),
    ("clock/speed", {"speed": 1e9}, 422, "speed"),
    ("webhooks/forge", {"record": "po_none"}, 404, None),
]
"""Path, body, and the status and field of the refusal."""


@pytest.mark.parametrize(("path", "body", "status", "field"), REFUSED)
def test_what_is_wrong_is_named_and_changes_nothing(
    control: Control, api: Api, path: str, body: dict[str, object], status: int, field: str | None
) -> None:
    intent = api.post("/payment/intents", {**TRIED, "metadata": {"sandbox_scenario": "immediate"}}).data["id"]
    before = control.get("state")
    got = control.ask("POST", path.format(intent=intent), body)
    assert (got.status, got.json.get("field")) == (status, field)
    assert (control.sandbox.rules, control.get("state")) == ([], before)
    assert control.get(f"payments/{intent}")["refunds"] == []


@pytest.mark.parametrize(
    ("body", "near"),
    [
        ({"operation": "payouts.create", "words": "lost_respons"}, "lost_response"),
        ({"operation": "payouts.creat", "words": "reset"}, "payouts.create"),
    ],
)
def test_an_unknown_word_is_answered_with_the_near_ones(control: Control, body: object, near: str) -> None:
    got = control.ask("POST", "rules", body)
    assert (got.status, near in got.json["near"]) == (400, True)


# --- rules --------------------------------------------------------------------------------------

SET: list[tuple[dict[str, object], str, int | None]] = [
    ({"words": "http:503", "times": 2}, "http:503*2", 2),
    ({"words": "reset", "times": None}, "reset (every time)", None),
    ({"words": "429:3 slow:2s"}, "429:3s*1 slow:2s*1 after 1", 2),
    ({"words": "http:503", "after": 3}, "http:503*1 after 3", 4),
    ({"words": "fail:NO_FUNDS after=0s", "times": 1}, "fail:NO_FUNDS after=0s", 1),
    ({"words": "complete reads=3"}, "complete reads=3", None),
    ({"words": "complete manual"}, "complete manual", None),
    ({"words": "hang"}, "hang*1", 1),
    ({"words": "hang", "sense": "outcome"}, "hang", None),
    (
        {"words": "reset, fail:X; delay:30s duplicate:2 drop"},
        "reset*1 fail:X delay:30s duplicate:2 drop",
        None,
    ),
]
"""What is added, and how the rule says it: its words, and how many more requests or records it touches."""


@pytest.mark.parametrize(("body", "words", "remaining"), SET)
def test_a_rule_is_set_by_words_listed_and_removed(
    control: Control, body: dict[str, object], words: str, remaining: int | None
) -> None:
    rule = control.post("rules", {"operation": "payouts.create", **body}, status=201)
    assert (rule["words"], rule["remaining"], rule["used_up"]) == (words, remaining, False)
    assert control.get("rules") == {"rules": [rule]}
    assert control.ask("DELETE", f"rules/{rule['id']}").status == 200
    assert control.sandbox.rules == []
    assert control.refused("DELETE", f"rules/{rule['id']}") == (404, f"no rule '{rule['id']}'")


def test_a_rule_disturbs_what_it_matches_until_it_is_used_up(control: Control, api: Api) -> None:
    body = {"operation": "payouts.create", "words": "http:503", "match": {"reference": "r-1"}}
    control.post("rules", body, status=201)
    assert [api.payout(reference=name).status for name in ("r-2", "r-1", "r-1")] == [201, 503, 201]
    (rule,) = control.get("rules")["rules"]
    assert (rule["used"], rule["used_up"], rule["match"]) == (2, True, {"reference": "r-1"})
    control.sandbox.on("*").respond("empty")
    assert control.ask("DELETE", "rules").status == 200
    assert control.sandbox.rules == []


def test_a_rule_for_one_key_leaves_the_others_alone(control: Control, api: Api, stranger: Api) -> None:
    body = {"operation": "payouts.list", "words": "http:500", "api_key": api.key}
    rule = control.post("rules", body, status=201)
    assert rule["key"]
    assert api.key not in json.dumps(rule)
    assert (stranger.get("/payouts").status, api.get("/payouts").status) == (200, 500)


# --- records ------------------------------------------------------------------------------------


def test_payouts_are_listed_read_and_settled(control: Control, api: Api) -> None:
    first, second = api.payout().data["id"], api.payout().data["id"]
    assert [one["id"] for one in control.get("payouts")["payouts"]] == [second, first]
    assert [one["id"] for one in control.get("payouts?limit=1")["payouts"]] == [second]
    assert control.post(f"records/{first}/settle", {"outcome": "fail:NO_FUNDS"}) == {"message": "Done."}
    assert control.get(f"payouts/{first}")["failure"]["code"]["value"] == "NO_FUNDS"
    assert [one["id"] for one in control.get("payouts?status=failed")["payouts"]] == [first]
    for call, status in (
        (f"records/{first}/settle", 422),
        ("records/po_none/settle", 404),
    ):
        assert control.refused("POST", call)[0] == status
    assert control.refused("GET", "payouts/po_none")[0] == 404


def test_account_data_is_masked_unless_it_is_asked_for(control: Control, api: Api) -> None:
    payout = api.post("/payouts", {**PAYOUT, "customer": {"email": "ada@example.test"}}).data["id"]
    request = control.sandbox.requests[-1].request_id
    for path in (f"payouts/{payout}", "payouts", f"requests/{request}"):
        assert "22990000000" not in json.dumps(control.get(path), default=str)
        assert "ada@example.test" not in json.dumps(control.get(path), default=str)
        assert "+22990000000" in json.dumps(control.get(f"{path}?reveal=1"), default=str)


def test_a_payment_is_paid_declined_and_refunded(control: Control, api: Api) -> None:
    session = api.post("/payment/checkouts", INTENT).data["checkout"]["id"]
    declined = control.post(f"payments/{session}/pay", {"outcome": "fail:CUSTOMER_DECLINED", "method": "m"})
    assert [one["status"] for one in declined["attempts"]] == ["failed"]
    paid = control.post(f"payments/{session}/pay", {"phone": "+22990000000", "country": "BJ"})
    assert (paid["status"], paid["session"]["id"]) == ("completed", session)
    refund = control.post(f"payments/{session}/refund", {"amount": "20.00", "pending": True}, status=201)
    (shown,) = control.get(f"payments/{session}")["refunds"]
    assert shown == {"id": refund["id"], "amount": 20, "pending": True}
    control.post(f"records/{refund['id']}/settle")
    control.post(f"payments/{session}/refund", status=201)
    assert [one["status"] for one in control.get("payments?status=refunded")["payments"]] == ["refunded"]
    assert control.get("payments?status=pending")["payments"] == []
    assert control.refused("POST", f"payments/{session}/pay")[0] == 422
    assert control.refused("POST", "payments/pi_none/pay")[0] == 404


# --- webhooks -----------------------------------------------------------------------------------


def test_webhooks_are_listed_sent_again_and_forged(control: Control, api: Api) -> None:
    payout = api.payout(webhook_url="http://127.0.0.1:9/hook?token=secret").data["id"]
    (hook,) = control.get("webhooks")["webhooks"]
    assert (hook["event"], hook["record"], hook["state"]) == ("payout.created", payout, "waiting")
    assert "secret" not in json.dumps(hook)
    assert control.get(f"webhooks/{hook['id']}")["tries"] == []
    again = control.post(f"webhooks/{hook['id']}/resend", status=201)
    assert (again["origin"], again["repeats"]) == ("resent", hook["id"])
    forged = control.post("webhooks/forge", {"record": payout, "event": "payout.completed"}, status=201)
    assert (forged["origin"], forged["event"]) == ("forged", "payout.completed")
    assert len(control.get("webhooks")["webhooks"]) == 3
    assert control.refused("POST", "webhooks/wh_none/resend")[0] == 404
    bare = api.payout().data["id"]
    for body, status, field in (({"event": "payout.complete", "url": HOOK}, 400, "event"), ({}, 422, "url")):
        got = control.ask("POST", "webhooks/forge", {"record": bare, **body})
        assert (got.status, got.json["field"]) == (status, field)


# --- time and keys ------------------------------------------------------------------------------


def test_the_clock_is_advanced_sped_up_and_frozen(control: Control, api: Api) -> None:
    payout = api.payout().data["id"]
    before = control.get("state")["clock"]["seconds"]
    after = control.post("clock/advance", {"by": "1m"})
    assert after["seconds"] - before == 60
    assert [(one["id"], one["after"]) for one in after["changes"]] == [
        (payout, "processing"),
        (payout, "completed"),
    ]
    assert control.post("clock/advance", {"by": 0.5})["changed"] == 0
    assert control.post("clock/speed", {"speed": 60})["speed"] == 60
    assert control.post("clock/speed", {"speed": 0})["frozen"]


def test_a_whole_key_is_given_at_its_creation_only(control: Control) -> None:
    made = control.post("keys", {"status": "active", "allowlist": ["127.0.0.0/8"]}, status=201)["api_key"]
    assert Api(control.sandbox, made).get("/payouts").status == 200
    keys = [control.sandbox.api_key, made]
    request = control.sandbox.requests[-1].request_id
    plain = [route.path for route in ROUTES if route.method == "GET" and "{" not in route.path]
    for path in (*plain, f"requests/{request}?reveal=1", f"requests/{request}/code"):
        assert not any(key in json.dumps(control.get(path), default=str) for key in keys), path
    shown = control.get("state")["keys"][1]
    assert (shown["hint"][-4:], shown["allowlist"]) == (made[-4:], ["127.0.0.0/8"])


def test_start_over_keeps_keys_and_time(control: Control, api: Api) -> None:
    api.payout(reference="r-1")
    control.sandbox.on("*").respond("reset")
    now = control.get("state")["clock"]
    control.post("reset")
    assert control.get("state")["clock"] == now
    assert (control.sandbox.rules, control.sandbox.requests) == ([], [])
    assert control.sandbox.books.payouts() == []
    control.sandbox.advance(100)  # no timer of what was there is left
    assert control.sandbox.entries() == []
    assert api.payout(reference="r-1").status == 201


# --- requests -----------------------------------------------------------------------------------


def test_requests_are_listed_newest_first_and_read_in_full(control: Control, api: Api) -> None:
    api.payout(idempotency_key="key-00001")
    api.get("/payouts")
    listed = control.get("requests")["requests"]
    assert [one["operation"] for one in listed] == ["payouts.list", "payouts.create"]
    assert len(control.get("requests?operation=payouts.list")["requests"]) == 1
    whole = control.get(f"requests/{listed[1]['id']}")
    assert (whole["body"]["amount"], whole["answer"]["status"], whole["reason"]) == (50, 201, None)
    assert whole["headers"]["x-idempotency-key"] == "key-00001"
    assert "authorization" not in whole["headers"]
    assert control.refused("GET", "requests/req_none")[0] == 404
    api.payout(amount=0)
    assert control.get(f"requests/{_newest(control)}")["reason"].partition(":")[0] == "amount"
    api.post("/payouts", b"<xml/>")
    assert control.get(f"requests/{_newest(control)}")["body"] == {"unreadable": "6 bytes that are not JSON"}


def _newest(control: Control) -> str:
    return control.sandbox.requests[-1].request_id


def test_a_request_whose_bytes_are_gone_has_no_command(control: Control, api: Api) -> None:
    control.sandbox._journal = Journal(body_bytes=0)
    api.payout()
    gone = _newest(control)
    assert control.refused("GET", f"requests/{gone}/code")[0] == 410
    assert control.get(f"requests/{gone}")["answer"] is None


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
    assert (xof["on_its_way"], xof["collected"], xof["payments"]) == (0, 3, {"completed": 1})
