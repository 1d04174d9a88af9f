"""Rules that hold for all values: limits, waits, decimals. For histories, see tests/fidelity."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from payments_async.sandbox import Sandbox, SandboxLimits
from payments_async.sandbox.common.rate_limits import KeyLimits
from tests.sandbox.raw_requests import Api

STEPS = st.integers(0, 400).map(lambda tenths: tenths / 4)


@settings(deadline=None)
@given(st.lists(STEPS, max_size=60), st.integers(1, 5), st.sampled_from(["aligned", "sliding"]))
def test_no_window_ever_admits_more_than_its_limit(gaps: list[float], limit: int, window: Any) -> None:
    meter = KeyLimits(SandboxLimits(writes=limit, window=window))
    now, admitted = 1_767_225_600.0, []
    for gap in gaps:
        now += gap
        excess = meter.admit("writes", None, now)
        if excess is None:
            admitted.append(now)
        else:
            assert 0 < excess.wait <= 60
            assert excess.limit == limit
    if window == "aligned":
        assert all(count <= limit for count in Counter(moment // 60 for moment in admitted).values())
    else:
        assert all(sum(start <= moment < start + 60 for moment in admitted) <= limit for start in admitted)


@settings(deadline=None)
@given(st.lists(STEPS, max_size=30), st.sampled_from(["aligned", "sliding"]))
def test_waiting_as_long_as_it_says_is_always_enough(gaps: list[float], window: Any) -> None:
    meter = KeyLimits(SandboxLimits(writes=2, window=window))
    now = 1_767_225_600.0
    for gap in gaps:
        now += gap
        excess = meter.admit("writes", None, now)
        if excess is not None:
            now += excess.wait
            assert meter.admit("writes", None, now) is None


@given(
    st.decimals("1", "1e20", allow_nan=False, allow_infinity=False, places=None),
    st.sampled_from(["XOF", "USD", "KWD"]),
)
@settings(max_examples=50, deadline=None)
def test_an_amount_comes_back_equal(amount: Decimal, currency: str) -> None:
    sandbox = Sandbox()
    api = Api(sandbox, sandbox.api_key)
    body = f'{{"amount": {amount}, "currency": "{currency}"}}'.encode()
    assert Decimal(str(api.post("/payment/intents", body).data["amount"]["value"])) == amount
