"""The scenario vocabulary, and the four ways in."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from payments_async.sandbox import (
    Cut,
    Drop,
    Hang,
    Reset,
    Rule,
    Sandbox,
    Slow,
    UnknownWord,
    VirtualClock,
)
from payments_async.sandbox._common.scenario_words import (
    MAGIC,
    Fault,
    HookWord,
    Scenario,
    ScenarioOutcome,
    Timing,
    parse,
)
from tests.sandbox.raw_requests import BANK, INTENT, PHONE, Api

KEY = "key-00001"


@pytest.mark.parametrize(
    ("text", "scenario"),
    [
        ("complete", Scenario(outcome=ScenarioOutcome("complete"))),
        ("fail:NO_FUNDS", Scenario(outcome=ScenarioOutcome("fail", code="NO_FUNDS"))),
        ("expire", Scenario(outcome=ScenarioOutcome("expire"))),
        ("action:collect_otp", Scenario(outcome=ScenarioOutcome("action", action="collect_otp"))),
        ("failover:2", Scenario(outcome=ScenarioOutcome("failover", count=2))),
        ("failover:999", Scenario(outcome=ScenarioOutcome("failover", count=20))),
        ("after=90s", Scenario(timing=Timing("after", seconds=90))),
        ("reads=3", Scenario(timing=Timing("reads", reads=3))),
        ("manual", Scenario(timing=Timing("manual"))),
        ("immediate", Scenario(timing=Timing("after"))),
        ("http:503", Scenario((Fault("http", status=503),))),
        ("429", Scenario((Fault("429", seconds=1),))),
        ("429:30", Scenario((Fault("429", seconds=30),))),
        ("slow:500ms", Scenario((Fault("slow", seconds=0.5),))),
        ("reset*3@2", Scenario((Fault("reset", times=3, after=2),))),
        (
            "http:503*2 lost_response",
            Scenario((Fault("http", status=503, times=2), Fault("lost_response", after=2))),
        ),
        (
            "fail:NO; after=2m,  empty",
            Scenario((Fault("empty"),), ScenarioOutcome("fail", code="NO"), Timing("after", seconds=120)),
        ),
        ("ok", Scenario(hooks=(HookWord("ok"),))),
        ("delay:2m", Scenario(hooks=(HookWord("delay", seconds=120),))),
        ("duplicate", Scenario(hooks=(HookWord("duplicate", count=2),))),
        ("duplicate:5", Scenario(hooks=(HookWord("duplicate", count=5),))),
        ("before_response", Scenario(hooks=(HookWord("before_response"),))),
        (
            "reorder empty forge fail:NO drop",
            Scenario(
                (Fault("empty"),),
                ScenarioOutcome("fail", code="NO"),
                hooks=(HookWord("reorder"), HookWord("forge"), HookWord("drop")),
            ),
        ),
    ],
)
def test_words_are_read(text: str, scenario: Scenario) -> None:
    assert parse(text, "fault") == scenario


def test_a_text_that_is_too_long_is_refused_unread() -> None:
    parse("hang " * 800, "fault")
    for text in ("hang " * 801, "x" * 1_000_000, "http:" + "5" * 10_000):
        with pytest.raises(UnknownWord, match="a scenario has at most 4,000 characters"):
            parse(text, "fault")


def test_hang_is_what_the_place_of_the_text_makes_it() -> None:
    assert parse("hang", "outcome") == Scenario(outcome=ScenarioOutcome("hang"))
    assert parse("hang", "fault") == Scenario((Fault("hang"),))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lost_respons", "near: lost_response"),
        ("qqq", "there are: complete"),
        ("", "unknown scenario word ''"),
        ("COMPLETE", "unknown scenario word"),
        ("complete:now", "takes no argument"),
        ("fail", "fail needs a code"),
        ("fail:lower", "fail needs a code"),
        ("action:redirect", "near: redirect_to_url"),
        ("failover:0", "whole number"),
        ("reads=", "whole number"),
        ("after=soon", "not a duration"),
        ("slow", "not a duration"),
        ("slow:999999h", "longer than ten years"),
        ("http:200", "300 to 599"),
        ("http:", "300 to 599"),
        ("complete*2", "belong to faults"),
        ("dropp", "near: drop"),
        ("drop:1", "takes no argument"),
        ("drop*2", "belong to faults"),
        ("delay", "not a duration"),
        ("duplicate:1", "2 to 20 copies"),
        ("duplicate:21", "2 to 20 copies"),
        ("duplicate:x", "whole number"),
    ],
)
def test_a_wrong_word_is_refused_with_what_is_near(text: str, message: str) -> None:
    with pytest.raises(UnknownWord, match=message.replace("(", r"\(")):
        parse(text, "outcome")


LINE: list[tuple[str, int, Any, int]] = [
    ("lost_request", 0, Drop(), 0),
    ("reset", 0, Reset(), 0),
    ("hang", 0, Hang(), 0),
    ("lost_response", 201, Drop(), 1),
    ("slow:2s", 201, Slow(2), 1),
    ("http:503", 503, None, 0),
    ("http:422", 422, None, 0),
    ("http:302", 302, None, 0),
    ("429:7s", 429, None, 0),
    ("bad_json", 201, None, 1),
    ("wrong_type", 201, None, 1),
    ("empty", 201, None, 1),
]


@pytest.mark.parametrize(("words", "status", "fault", "effects"), LINE)
def test_a_fault_answers_as_it_says_and_has_the_effect_it_says(
    api: Api, words: str, status: int, fault: object, effects: int
) -> None:
    got = api.payout(scenario=words)
    assert (got.status, got.answer.fault) == (status, fault)
    assert len(api.sandbox.books.payouts()) == effects
    assert api.sandbox.requests[-1].fault == words


def test_a_body_can_be_cut_spoilt_emptied_or_of_wrong_types(api: Api) -> None:
    cut = api.payout(scenario="cut_body").answer
    assert cut.fault == Cut(len(cut.body) // 2)
    assert api.payout(scenario="empty").answer.body == b""
    assert api.payout(scenario="bad_json").answer.body.startswith(b"<html>")
    data = api.payout(scenario="wrong_type").data
    assert data["id"] == api.sandbox.books.payouts()[-1].id
    assert isinstance(data["amount"], int)
    assert isinstance(data["status"], dict)
    assert (data["failure"], data["created_at"]["text"][:4]) == (7, "2026")
    page = api.get("/payouts", scenario="wrong_type").json
    assert [set(item) for item in page["data"]] == [set(data)] * 4
    assert page["pagination"] == 7
    assert api.intent(scenario="wrong_type").data["refunds_summary"] == 7
    requery = api.post(f"/payment/intents/{api.intent().data['id']}/requery", scenario="wrong_type").data
    assert requery["attempts"] == 7
    status = api.get("/utils/status/payment/method/m/BJ", scenario="wrong_type").json
    assert status == {"data": 7, "meta": 7}
    mixed = api.payout(scenario="wrong_type", metadata={"list": [1, {"id": "mine", "n": 1}]}).data["metadata"]
    assert mixed == {"list": [1, {"id": "mine", "n": "not a number"}]}


def test_a_422_fault_carries_errors_and_a_429_its_headers(api: Api) -> None:
    assert set(api.payout(scenario="http:422").json) == {"message", "errors"}
    headers = api.payout(scenario="429:7").headers
    assert (headers["Retry-After"], headers["X-RateLimit-Remaining"]) == ("7", "0")


@pytest.mark.parametrize("way", ["control", "header", "metadata"])
def test_a_script_moves_on_with_every_retry_of_one_request(api: Api, way: str) -> None:
    words = "http:503*2 lost_response@3"
    options: dict[str, Any] = {"idempotency_key": KEY}
    if way == "control":
        api.sandbox.on("payouts.create").respond(words)
    elif way == "header":
        options["scenario"] = words
    else:
        options["metadata"] = {"sandbox_scenario": words}
    answers = [api.payout(**options) for _ in range(5)]
    assert [got.status for got in answers] == [503, 503, 201, 201, 201]
    assert [got.answer.fault for got in answers] == [None, None, None, Drop(), None]
    assert len(api.sandbox.books.payouts()) == 1


def test_without_a_key_requests_are_distinguished_by_their_body(api: Api) -> None:
    statuses = [api.payout(scenario="http:503", reference=name).status for name in ("a", "b", "a", "b")]
    assert statuses == [503, 503, 201, 201]


@pytest.mark.parametrize("ending", [ending for ending, scenario in MAGIC.items() if not scenario.hooks])
def test_every_magic_number_plays_its_scenario_for_payouts_and_attempts(api: Api, ending: str) -> None:
    number = f"+229 61 99 00 {ending}"
    scenario = MAGIC[ending]
    payout = api.payout(instrument={**PHONE, "phone_number": number}, idempotency_key=KEY)
    attempt = {"method_code": "m", "country": "BJ", "phone": {"number": number, "country": "BJ"}}
    intent = api.intent(attempt=attempt, idempotency_key="key-00002")
    tenant = api.sandbox._core.world.tenants[api.key]
    if scenario.faults:
        assert [request.fault is not None for request in api.sandbox.requests] == [True, True]
        again = api.payout(instrument={**PHONE, "phone_number": number}, idempotency_key=KEY)
        assert (again.status, again.answer.fault) == (201, None)
    else:
        wanted = scenario.outcome
        assert (payout.status, intent.status) == (201, 201)
        assert tenant.payments[0].plan is not None
        assert tenant.payments[0].plan.outcome == wanted
        possible = wanted is not None and wanted.kind in ("complete", "fail", "hang")
        assert tenant.payouts[0].plan.outcome == (wanted if possible else ScenarioOutcome("complete"))


def test_account_numbers_and_locked_phones_are_magic_too(api: Api) -> None:
    api.payout(instrument={**BANK, "account_number": "1234990001"})
    locked = {"phone": {"number": "990002", "country": "BJ"}}
    session_id = api.post("/payment/checkouts", {**INTENT, "restriction": locked}).data["checkout"]["id"]
    api.sandbox.advance(5)
    assert api.get("/payouts").data[0]["failure"]["code"]["value"] == "INSUFFICIENT_FUNDS"
    api.sandbox.pay(session_id)
    api.sandbox.advance(5)
    attempt = api.get(f"/payment/checkouts/{session_id}").data["payment"]["active_attempt"]
    assert attempt["failure"]["code"]["value"] == "INVALID_RECIPIENT"


@pytest.mark.parametrize("number", ["+22990099", "990001 1", "+229990099", "88990045", ""])
def test_other_numbers_are_ordinary(api: Api, number: str) -> None:
    api.payout(instrument={**PHONE, "phone_number": number or "1"})
    (payout,) = api.sandbox._core.world.tenants[api.key].payouts
    assert (payout.plan.outcome, payout.plan.timing.seconds) == (ScenarioOutcome("complete"), 5.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scenario": "lost_respons"}, "near: lost_response"),
        ({"metadata": {"sandbox_scenario": "lost_respons"}}, "near: lost_response"),
        ({"scenario": "expire"}, "cannot end with 'expire'"),
        ({"metadata": {"sandbox_scenario": "failover:1"}}, "cannot end with 'failover'"),
        ({"metadata": {"sandbox_scenario": 5}}, "must be a string"),
    ],
)
def test_a_wrong_scenario_in_a_request_gets_400(api: Api, options: dict[str, Any], message: str) -> None:
    got = api.payout(**options)
    assert (got.status, message in got.json["message"]) == (400, True)
    assert api.sandbox.books.payouts() == []


def test_an_outcome_in_the_header_of_a_read_means_nothing(api: Api) -> None:
    assert api.get("/payouts", scenario="expire").status == 200


def test_the_first_match_wins_control_before_header_before_metadata_before_magic(api: Api) -> None:
    magic = {**PHONE, "phone_number": "+229990010"}

    def code(**options: Any) -> object:
        payout = api.payout(instrument=magic, **options).data
        api.sandbox.advance(5)
        failure = api.sync(payout["id"])["failure"]
        return failure and failure["code"]["value"]

    metadata = {"sandbox_scenario": "fail:METADATA"}
    assert code() is None
    assert code(metadata=metadata) == "METADATA"
    assert code(metadata=metadata, scenario="fail:HEADER") == "HEADER"
    api.sandbox.on("payouts.create").outcome("fail:RULE")
    api.sandbox.on("payouts.create").outcome("fail:LATER_RULE")
    assert code(metadata=metadata, scenario="fail:HEADER") == "RULE"


@pytest.mark.parametrize(
    ("match", "hit"),
    [
        ({"reference": "r-1"}, True),
        ({"reference": "r-2"}, False),
        ({"reference": "r-*"}, True),
        ({"reference": "R-*"}, False),
        ({"reference": r"r-\*"}, False),
        ({"reference": "*2*"}, False),
        ({"reference": "*-*"}, True),
        ({"description": "*"}, False),
        ({"amount": Decimal("10.50")}, True),
        ({"amount": 10}, False),
        ({"amount": "10.5"}, True),
        ({"amount": "10.50"}, True),  # the request has 10.5
        ({"metadata__order": 7}, True),
        ({"metadata__order__deep": 7}, False),
        ({"instrument__country": "BJ", "currency": "XOF"}, True),
        ({"description": None}, False),
    ],
)
def test_a_rule_matches_values_of_the_body(api: Api, match: dict[str, Any], hit: bool) -> None:
    api.sandbox.on("payouts.create", **match).respond("http:500")
    got = api.payout(reference="r-1", amount=10.5, metadata={"order": 7})
    assert (got.status == 500) is hit


def test_a_rule_matches_path_and_query_values_and_globs(api: Api) -> None:
    payout_id = api.payout().data["id"]
    api.sandbox.on("payouts.sync", payout_id=payout_id).respond("http:500")
    api.sandbox.on("*.list", status="failed").respond("http:502")
    assert api.get(f"/payouts/{payout_id}/sync").status == 500
    assert api.get("/payouts?status=pending").status == 200
    assert api.get("/payment/intents?status=failed").status == 502


def test_a_reference_with_a_star_is_matched_alone_with_a_stroke_before_it(api: Api) -> None:
    api.sandbox.on("payouts.create", reference=r"june-\*").respond("http:500", times=None)
    assert [api.payout(reference=one).status for one in ("june-1", "june-*")] == [201, 500]


def test_a_rule_is_used_up_when_all_it_was_to_do_is_done(api: Api) -> None:
    rule = api.sandbox.on("payouts.create").respond("http:500", times=2, after=1)
    seen = []
    for _ in range(4):
        seen.append((api.payout().status, rule.is_used_up, rule.is_over, rule.remaining))
    assert seen == [
        (201, False, False, 2),
        (500, False, False, 1),
        (500, True, True, 0),
        (201, True, True, 0),
    ]
    assert api.sandbox.unused_rules == []


def test_a_fault_for_every_time_never_ends(api: Api) -> None:
    rule = api.sandbox.on("payouts.create").respond("http:500", times=None)
    assert not rule.is_used_up
    assert {api.payout().status for _ in range(5)} == {500}
    assert rule.is_used_up  # it has been met, so that no test waits for it
    assert (rule.is_over, rule.remaining) == (False, None)
    rule.respond("reset")
    assert api.payout().status == 500


def test_an_outcome_can_be_for_so_many_records(api: Api) -> None:
    rule = api.sandbox.on("payouts.create").outcome("fail:NO immediate", times=1)
    assert api.sandbox.unused_rules == [rule]
    assert [api.payout().data["status"] for _ in range(2)] == ["failed", "pending"]
    assert rule.is_used_up


def rule(sandbox: Sandbox) -> Rule:
    return sandbox.on("payouts.create")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda sandbox: sandbox.on("payouts.creat"), "near: payouts.create"),
        (lambda sandbox: rule(sandbox).respond("complete"), "is not a fault"),
        (lambda sandbox: rule(sandbox).respond("reset immediate"), "is not a fault"),
        (lambda sandbox: rule(sandbox).outcome("reset"), "holds a fault"),
        (lambda sandbox: rule(sandbox).outcome("expire"), "cannot end with 'expire'"),
        (lambda sandbox: rule(sandbox).respond("rest"), "near: reset"),
        (lambda sandbox: rule(sandbox).webhook("complete"), "not all webhook words"),
        (lambda sandbox: rule(sandbox).webhook("drop lost_response"), "not all webhook words"),
        (lambda sandbox: rule(sandbox).respond("drop"), "is not a fault"),
        (lambda sandbox: rule(sandbox).respond("lost_response drop"), "webhook words into webhook"),
        (lambda sandbox: rule(sandbox).outcome("drop"), "holds a fault or a webhook word"),
        (lambda sandbox: sandbox.on("payouts.list").webhook("drop"), r"payouts\.list creates no record"),
    ],
)
def test_a_wrong_rule_is_refused_at_once(sandbox: Sandbox, wrong: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        wrong(sandbox)


def test_a_glob_gives_its_outcome_where_it_can_be_had(api: Api) -> None:
    api.sandbox.on("*.create").outcome("expire immediate")
    assert api.payout().data["status"] == "pending"
    api.intent()
    assert api.listed_intent()["status"] == "expired"


def by_default(scenario: str) -> Api:
    """A sandbox in which these words decide what nothing else decides."""
    sandbox = Sandbox(scenario=scenario, clock=VirtualClock.frozen())
    return Api(sandbox, sandbox.api_key)


@pytest.mark.parametrize(
    ("scenario", "statuses"),
    [("http:503", [503, 503, 503]), ("http:503*2 http:500", [503, 503, 500, 201])],
    ids=["every request", "a script"],
)
def test_a_default_fault_is_for_every_request_unless_it_has_a_count(
    scenario: str, statuses: list[int]
) -> None:
    api = by_default(scenario)
    assert [api.payout().status for _ in statuses] == statuses


def test_rules_come_before_the_default() -> None:
    api = by_default("http:503")
    api.sandbox.on("payouts.create").respond("http:500")
    assert [api.payout().status for _ in range(2)] == [500, 503]
    assert api.sandbox.unused_rules == []


def test_a_default_outcome_holds_where_it_can() -> None:
    api = by_default("slow:200ms expire immediate")
    assert api.payout().answer.fault == Slow(0.2)
    api.intent()
    assert [entry.status for entry in api.sandbox.books.payments()] == ["expired"]
    assert [entry.status for entry in api.sandbox.books.payouts()] == ["pending"]
