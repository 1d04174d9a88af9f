"""The pass over a usual payout and the rules that have the words agree."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from payments_async import Guard, Instrument, PayoutRequest
from payments_async._codec.encode import checked_body, encode
from payments_async._codec.payment_body import Payment, read_payment
from payments_async._guard.rules import QuickRules, judge, judge_most, judge_sums

GUARDS = st.builds(
    Guard,
    most=st.dictionaries(st.sampled_from(["GHS", "XOF", "KWD", "XAU"]), st.integers(1, 400), min_size=1),
    methods=st.none() | st.sets(st.sampled_from(["momo", "bank", "card"]), min_size=1),
    countries=st.none() | st.sets(st.sampled_from(["GH", "NG"]), min_size=1),
    decimals=st.booleans(),
    other_currencies=st.sampled_from(["allow", "refuse"]),
)
AMOUNTS = st.decimals(1, 500, places=0) | st.decimals(1, 500, places=2) | st.decimals(1, 500, places=4)
INSTRUMENTS = st.sampled_from(
    [
        Instrument.phone("+233200000001", "GH"),
        Instrument.phone("+2348000000001", "NG"),
        Instrument.crypto_address("0x1", "tron"),
        {"type": "phone"},
    ]
)
REQUESTS = st.builds(
    PayoutRequest,
    amount=AMOUNTS,
    currency=st.sampled_from(["GHS", "XOF", "KWD", "XAU", "USD"]),
    method=st.sampled_from(["momo", "bank"]),
    instrument=INSTRUMENTS,
)


@given(st.lists(GUARDS, min_size=1, max_size=2), REQUESTS, st.none() | st.integers(1, 400))
def test_what_passes_quickly_breaks_no_rule_and_what_breaks_none_passes_quickly(
    guards: list[Guard], request: PayoutRequest, most_of_all: Any
) -> None:
    limits: Any = {} if most_of_all is None else {"GHS": [(60, most_of_all)]}
    body = checked_body(request) or encode(request)
    payment = read_payment(body, is_ours=True)
    assert isinstance(payment, Payment)
    assert (payment.amount, payment.currency) == (request.amount, request.currency)
    refusals = [judge(guard, payment, pays_out=True) or judge_most(guard, payment) for guard in guards]
    refusals.append(judge_sums(limits.get(payment.currency, ()), payment))
    found = QuickRules(guards, limits).amount_of(body)
    if found is not None:
        assert found == (payment.currency, payment.amount)
        assert not any(refusals)
    named = any(payment.currency in guard.most for guard in guards)
    assert found is not None or any(refusals) or not named or "." in str(payment.amount)
