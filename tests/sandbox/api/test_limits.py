"""Rate limits (docs/interface.md, Limits, Rate limits)."""

from __future__ import annotations

from collections.abc import Callable
from email.utils import parsedate_to_datetime
from typing import Any

import attrs
import pytest

from payments_async.sandbox import HOSTILE, Sandbox, SandboxLimits, VirtualClock
from tests.sandbox.raw_requests import Api

SMALL = SandboxLimits(writes=3, reads=2, diagnostics=4, diagnostics_per_record=2)
EPOCH = 1_767_225_600.0


def limited(limits: SandboxLimits = SMALL, **options: Any) -> Api:
    sandbox = Sandbox(limits=limits, clock=VirtualClock.frozen(), **options)
    return Api(sandbox, sandbox.api_key)


@pytest.mark.fact("limit.writes", "limit.reads", "limit.diagnostics", "limit.diagnostics-per-record")
def test_the_limits_are_the_interfaces() -> None:
    limits = SandboxLimits()
    assert (limits.writes, limits.reads, limits.diagnostics) == (60_000, 10_000, 6_000)
    assert limits.diagnostics_per_record == 12


@pytest.mark.fact(
    "error.429", "error.429.header-limit", "error.429.header-remaining", "error.429.header-retry-after"
)
@pytest.mark.fact("limit.one-minute-windows")
def test_a_full_window_is_answered_429_with_three_headers_until_the_minute_ends() -> None:
    api = limited()
    api.sandbox.advance(45.5)
    for _ in range(3):
        assert api.payout().status == 201
    got = api.payout()
    assert got.status == 429
    assert isinstance(got.json["message"], str)
    assert got.headers["X-RateLimit-Limit"] == "3"
    assert got.headers["X-RateLimit-Remaining"] == "0"
    assert got.headers["Retry-After"] == "15"
    api.sandbox.advance(14.4)
    assert api.payout().status == 429
    api.sandbox.advance(0.1)
    assert api.payout().status == 201
    assert len(api.sandbox.books.payouts()) == 4, "what was over the limit was not carried out"


@pytest.mark.fact("limit.writes.shared")
def test_all_creations_draw_on_one_budget() -> None:
    api = limited()
    assert [api.payout().status, api.intent().status, api.checkout().status] == [201, 201, 201]
    assert [api.payout().status, api.intent().status, api.checkout().status] == [429, 429, 429]
    assert api.get("/payouts").status == 200


@pytest.mark.fact("limit.reads")
def test_all_reads_draw_on_one_budget() -> None:
    api = limited()
    api.get("/payment/intents")
    api.get("/payment/checkouts/cs_1")
    paths = ["/payouts", "/payment/intents/pi/refunds/availability", "/utils/status/payment/method/m/BJ"]
    assert [api.get(path).status for path in paths] == [429, 429, 429]
    assert api.payout().status == 201


@pytest.mark.fact("limit.diagnostics-per-record")
def test_an_intent_and_its_attempt_have_budgets_of_their_own() -> None:
    api = limited()
    intent = api.intent().data
    requery = f"/payment/intents/{intent['id']}/requery"
    inspect = f"/payment/intents/{intent['id']}/attempts/{intent['active_attempt']['id']}/inspect"
    assert [api.post(requery).status for _ in range(3)] == [200, 200, 429]
    assert [api.get(inspect).status for _ in range(3)] == [200, 200, 429]


@pytest.mark.fact("limit.diagnostics")
def test_live_operations_share_the_budget_of_their_key() -> None:
    api = limited(attrs.evolve(SMALL, diagnostics_per_record=None))
    payout_id = api.payout().data["id"]
    statuses = [api.get(f"/payouts/{payout_id}/sync").status for _ in range(5)]
    assert statuses == [200, 200, 200, 200, 429]


@pytest.mark.fact("auth.limits-per-key")
def test_each_key_has_its_own_budget() -> None:
    api = limited()
    for _ in range(3):
        api.payout()
    assert api.payout().status == 429
    assert Api(api.sandbox, api.sandbox.new_key()).payout().status == 201


def test_a_replay_counts_as_a_request() -> None:
    api = limited()
    statuses = [api.payout(idempotency_key="key-00001").status for _ in range(4)]
    assert statuses == [201, 201, 201, 429]


@pytest.mark.fact("response.refunds.availability.errors")
def test_refund_availability_refuses_with_401_403_404_and_429() -> None:
    api = limited()
    path = "/payment/intents/pi_1/refunds/availability"
    barred = Api(api.sandbox, api.sandbox.new_key(allowlist=[]))
    unknown = Api(api.sandbox, "sk_sandbox_nobody")
    assert [unknown.get(path).status, barred.get(path).status] == [401, 403]
    assert [api.get(path).status for _ in range(3)] == [404, 404, 429]


@pytest.mark.fact("limit.one-minute-windows")
def test_sliding_windows_admit_one_limit_in_any_minute() -> None:
    api = limited(attrs.evolve(SMALL, window="sliding"))
    api.sandbox.advance(59.9)
    assert [api.payout().status for _ in range(3)] == [201] * 3
    api.sandbox.advance(0.1)
    refused = api.payout()
    assert (refused.status, refused.headers["Retry-After"]) == (429, "60")
    api.sandbox.advance(59.8)
    assert api.payout().status == 429
    api.sandbox.advance(0.1)
    assert api.payout().status == 201


def test_sliding_windows_drop_records_that_are_asked_about_no_more() -> None:
    api = limited(SandboxLimits(window="sliding"))
    for _ in range(100):
        api.sync(api.payout().data["id"])
    api.sandbox.advance(60)
    api.get("/payouts")
    meter = api.sandbox._core.world.tenants[api.key].limits
    assert list(meter._windows._times) == ["reads"]  # type: ignore[attr-defined] # the sliding kind


def test_a_hostile_429_has_a_date_and_no_rate_headers() -> None:
    api = limited(profile=HOSTILE)
    for _ in range(3):
        api.payout()
    headers = api.payout().headers
    assert parsedate_to_datetime(headers["Retry-After"]).timestamp() == EPOCH + 60
    assert not {"X-RateLimit-Limit", "X-RateLimit-Remaining"} & set(headers)


@pytest.mark.parametrize("act", [lambda api: api.post("/payouts", b"{"), lambda api: api.payout(amount=0)])
def test_requests_that_are_refused_for_their_content_count(act: Callable[[Api], object]) -> None:
    api = limited()
    for _ in range(3):
        act(api)
    assert api.payout().status == 429


def test_refund_availability_can_have_the_stricter_limit() -> None:
    api = limited(SandboxLimits(refund_availability=2))
    path = f"/payment/intents/{api.intent().data['id']}/refunds/availability"
    assert [api.get(path).status for _ in range(3)] == [200, 200, 429]
    assert api.get("/payouts").status == 200
