"""Why a request failed, as the log and the request's page say it; and the short texts of pages."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from payments_async.sandbox import Sandbox, SandboxLimits, VirtualClock
from payments_async.sandbox._control_api.failure_reasons import reason
from payments_async.sandbox._inspector.filters import lasted, linked, passed
from payments_async.sandbox._inspector.log import outcome_of
from tests.sandbox.raw_requests import INTENT, Api, LoggedExchange


def requested(sandbox: Sandbox) -> LoggedExchange:
    """The newest request."""
    found = [entry.item for entry in sandbox.entries() if isinstance(entry.item, LoggedExchange)]
    return found[-1]


def why(sandbox: Sandbox) -> str | None:
    return reason(requested(sandbox))


@pytest.mark.parametrize("profile", ["observed", "strict", "alternate", "hostile"])  # lists, texts, objects
def test_a_422_names_its_field_and_the_others(profile: str) -> None:
    sandbox = Sandbox(clock=VirtualClock.frozen(), profile=profile)
    api = Api(sandbox, sandbox.api_key)
    api.payout(amount=0)
    assert str(why(sandbox)).startswith("amount: The amount field must be at least")
    api.payout(amount=0, instrument={"type": "phone"}, reference="r-1")
    others = str(why(sandbox)).partition("Also wrong: ")[2]
    assert sorted(others.split(", ")) == ["instrument.country", "instrument.phone_number"]
    api.post("/payouts", {"amount": "x", "currency": 1, "method": 2, "instrument": 3, "reference": 4})
    assert str(why(sandbox)).endswith(", …")


def test_a_refusal_says_what_the_service_said(api: Api, sandbox: Sandbox) -> None:
    sandbox.handle("GET", "/v1/payouts", {"Authorization": "Bearer sk_sandbox_wrong"})
    assert why(sandbox) == "This sandbox does not know the key; it may have been started anew since."
    api.post("/payouts", b"{")
    assert why(sandbox) == "The request body is not readable JSON."
    api.get("/nowhere")
    assert "nothing at GET" in str(why(sandbox))


@pytest.mark.parametrize(
    ("profile", "said"),
    [
        ("observed", ": 1 a minute; Retry-After 60 s"),
        ("alternate", ""),  # without headers
        ("hostile", "; Retry-After Thu, 01 Jan 2026 00:01:00 GMT"),
    ],
)
def test_a_429_names_its_limit(profile: str, said: str) -> None:
    limits = SandboxLimits(writes=1, reads=2, diagnostics=9, diagnostics_per_record=1)
    sandbox = Sandbox(clock=VirtualClock.frozen(), limits=limits, profile=profile)
    api = Api(sandbox, sandbox.api_key)
    payout = api.payout().data["id"]
    api.post("/payment/intents", INTENT)
    assert why(sandbox) == f"limit of payment_intents.create{said}"
    api.get(f"/payouts/{payout}/sync")
    api.get(f"/payouts/{payout}/sync")
    assert why(sandbox) == f"limit of payouts.sync{said}"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("429:3s", "simulated by a scenario; no limit was reached; Retry-After 3 s"),
        ("lost_request", "the connection was closed before the answer; it was not carried out"),
        ("lost_response", "the connection was closed before the answer"),
        ("cut_body", "only the first half of the answer arrived"),
        ("slow:2s", "the answer came late"),
        ("http:503", "Sandbox fault: HTTP 503."),
    ],
)
def test_a_fault_says_what_it_did(api: Api, sandbox: Sandbox, words: str, said: str) -> None:
    api.payout(scenario=words)
    assert why(sandbox) == said
    assert requested(sandbox).log.fault == words


def test_a_refusal_that_comes_late_says_both(api: Api, sandbox: Sandbox) -> None:
    api.payout(reference="r-1")
    api.payout(reference="r-1", scenario="slow:2s")
    assert str(why(sandbox)).startswith("the answer came late; A payout with this reference already exists")


def test_what_was_let_go_or_cannot_be_read_is_said_so(api: Api, sandbox: Sandbox) -> None:
    api.payout(amount=0)
    exchange = requested(sandbox)
    assert exchange.answer is not None
    assert reason(replace(exchange, answer=None)) is None
    for body, said in (
        (b"<html>", "the answer is no JSON"),
        (b"[]", None),
        (b'{"message": 1}', None),
        (b'{"message": "no account for ada@example.test"}', "no account for •••st"),
    ):
        assert reason(replace(exchange, answer=replace(exchange.answer, body=body))) == said
    silent = replace(exchange, log=replace(exchange.log, status=0), answer=None)
    assert reason(silent) == "no answer came; it was not carried out"


@pytest.mark.parametrize(
    ("status", "fault", "outcome"),
    [
        (201, None, "ok"),
        (201, "slow:60", "ok"),
        (201, "lost_response", "unanswered"),
        (200, "cut_body", "unanswered"),
        (0, "hang", "unanswered"),
        (200, "bad_json:x", "failed"),
        (503, None, "failed"),
        (422, "empty", "refused"),
        (302, None, "refused"),
    ],
)
def test_a_request_is_what_its_caller_got(status: int, fault: str | None, outcome: str) -> None:
    assert outcome_of(status, fault) == outcome


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (lasted(None), "under way"),
        (lasted(0.00034), "0.3 ms"),
        (lasted(1.25), "1.25 s"),
        (passed(0.34), "340 ms"),
        (passed(5.0), "5 s"),
        (passed(120), "2 min"),
        (passed(5_400), "1 h 30 min"),
        (passed(86_400), "24 h"),
        (passed(1e7), "115 days"),
    ],
)
def test_times_are_short_texts(text: str, expected: str) -> None:
    assert text == expected


def test_an_id_in_a_text_is_a_link_and_nothing_else_is() -> None:
    payout, near = "po_" + "a1b2c" * 4, "po_short xpo_" + "a" * 20 + " po_" + "a" * 21
    assert linked(f'<b> "{payout}" & {near} wh_00000001') == (
        f'&lt;b&gt; &#34;<a href="/_sandbox/payouts/{payout}">{payout}</a>&#34; &amp; {near} '
        '<a href="/_sandbox/webhooks/wh_00000001">wh_00000001</a>'
    )
