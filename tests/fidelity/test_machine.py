"""Rules that hold for every history of the service: money, keys, references, pages, refunds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from payments_async.sandbox import Sandbox, SandboxLimits, VirtualClock
from tests.sandbox.raw_requests import Api

pytestmark = pytest.mark.no_cover  # heavy under a tracer; what it runs is covered without it

FAULTS = st.sampled_from(
    [None, "lost_response", "lost_request", "http:503", "cut_body", "429", "empty", "hang", "slow:9"]
)
OUTCOMES = st.sampled_from(
    ["complete", "fail:NO", "manual", "reads=2", "immediate", "after=90s", "fail:NO immediate"]
)
States = Mapping[str, Collection[str]]
PAYOUT_STATES: States = {
    "pending": ["processing", "completed", "failed"],
    "processing": ["completed", "failed"],
    **dict.fromkeys(("completed", "failed"), ()),
}
PAYMENT_STATES: States = {
    "pending": ["completed", "failed", "expired"],
    **dict.fromkeys(("completed", "partially_refunded"), ("refunded", "partially_refunded")),
    **dict.fromkeys(("failed", "expired", "refunded"), ()),
}
ATTEMPT_STATES: States = {
    "processing": ["action_required", "completed", "failed", "expired"],
    "action_required": ["processing", "completed", "failed", "expired"],
    **dict.fromkeys(("completed", "failed", "expired"), ()),
}
STATES = {"payout": PAYOUT_STATES, "payment": PAYMENT_STATES, "attempt": ATTEMPT_STATES}


class History(RuleBasedStateMachine):
    """Any interleaving of creations, retries, faults, payers, refunds, time and reading, by two merchants."""

    def __init__(self) -> None:
        super().__init__()
        self.sandbox = Sandbox(clock=VirtualClock.frozen(), limits=SandboxLimits.off())
        self.apis = [Api(self.sandbox, self.sandbox.api_key), Api(self.sandbox, self.sandbox.new_key())]
        self.sent: dict[tuple[str, str], dict[str, Any]] = {}
        self.answers: dict[tuple[str, str], bytes] = {}
        self.statuses: dict[str, str] = {}

    def payments(self) -> list[Any]:
        tenants = self.sandbox._core.world.tenants.values()
        return [payment for tenant in tenants for payment in tenant.payments]

    @rule(who=st.integers(0, 1), number=st.integers(0, 5), fault=FAULTS, outcome=OUTCOMES)
    def create_or_repeat(self, who: int, number: int, fault: str | None, outcome: str) -> None:
        """Two keys for each reference, so that references meet as well as keys do."""
        api, key = self.apis[who], f"key-{number:05}"
        fields = {"reference": f"r-{number // 2}", "metadata": {"sandbox_scenario": outcome}}
        fields = self.sent.setdefault((api.key, key), fields)
        before = len(self.sandbox.books.payouts())
        got = api.payout(idempotency_key=key, scenario=fault, **fields)
        made = len(self.sandbox.books.payouts()) - before
        assert made in (0, 1)
        if got.status == 201 and got.answer.fault is None and fault != "empty":
            assert self.answers.setdefault((api.key, key), got.answer.body) == got.answer.body
            assert got.replayed is (made == 0)
        if got.status != 201:
            assert made == 0

    @rule(outcome=st.sampled_from(["failover:1", "fail:NO", "action:collect_otp", "hang", "immediate"]))
    def start_a_payment(self, outcome: str) -> None:
        self.apis[0].intent(metadata={"sandbox_scenario": outcome}, amount=30)

    @rule(amount=st.sampled_from([1, 7, 100]))
    def open_a_session(self, amount: int) -> None:
        assert self.apis[0].checkout(amount=amount, expires_in_minutes=30).status == 201

    @rule(at=st.integers(0, 9), outcome=st.sampled_from([None, "fail:NO", "action:collect_otp", "complete"]))
    def pay(self, at: int, outcome: str | None) -> None:
        """A payer, who may come too late."""
        waiting = [payment for payment in self.payments() if payment.is_open]
        if waiting:
            self.sandbox.pay(waiting[at % len(waiting)].id, outcome=outcome)

    @rule(at=st.integers(0, 99), end=st.sampled_from(["complete", "fail:NO", "expire"]))
    def end_a_record_by_hand(self, at: int, end: str) -> None:
        statuses = self.statuses_in_the_books()
        if not statuses:
            return
        record_id = list(statuses)[at % len(statuses)]
        try:
            self.sandbox.settle(record_id, end)
        except ValueError:
            assert self.statuses_in_the_books() == statuses, "what is refused changes nothing"

    @rule(at=st.integers(0, 9), share=st.sampled_from(["0.01", "7", "30", "999"]), pending=st.booleans())
    def refund(self, at: int, share: str, pending: bool) -> None:
        paid = [payment for payment in self.payments() if payment.completed_at is not None]
        if not paid:
            return
        payment, wanted = paid[at % len(paid)], Decimal(share)
        left = self.available(payment)
        try:
            self.sandbox.refund(payment.id, wanted, pending=pending)
        except ValueError:
            assert wanted > left, "a refund within the balance is not turned down"
        else:
            assert wanted <= left
            assert self.available(payment) == left - wanted

    @rule(completed=st.booleans())
    def end_a_refund(self, completed: bool) -> None:
        waiting = [refund for payment in self.payments() for refund in payment.refunds if refund.pending]
        for refund in waiting[:1]:
            left = self.available(refund.payment)
            self.sandbox.settle(refund.id, "complete" if completed else "fail:NO")
            assert self.available(refund.payment) == left + (0 if completed else refund.amount)

    def available(self, payment: Any) -> Decimal:
        told = self.apis[0].get(f"/payment/intents/{payment.id}/refunds/availability").data
        amounts = [Decimal(told[f"{name}_amount"]["value"]) for name in ("refunded", "pending", "refundable")]
        assert min(amounts) >= 0
        assert sum(amounts) == (payment.amount if payment.completed_at else 0)
        assert told["is_refundable"] is (amounts[2] > 0) is (told["unavailable_reason"] is None)
        assert told["has_pending_refund"] is (amounts[1] > 0)
        return amounts[2]

    @rule(seconds=st.sampled_from([0.5, 2, 5, 60, 3600]))
    def let_time_pass(self, seconds: float) -> None:
        changes = self.sandbox.advance(seconds)
        assert [change.at for change in changes] == sorted(change.at for change in changes)
        for change in changes:
            assert change.before is None or change.after in STATES[change.kind][change.before]

    @rule(per_page=st.integers(1, 4), newcomers=st.lists(st.booleans(), max_size=6))
    def walk_the_list(self, per_page: int, newcomers: list[bool]) -> None:
        """Pages give what was there when the walk began, once each, whatever is added on the way."""
        api = self.apis[0]
        there = [entry.id for entry in self.sandbox.books.payouts() if entry.key == self.fingerprint(api)]
        found: list[str] = []
        path = f"/payouts?per_page={per_page}"
        cursor, added = "", iter(newcomers)
        while True:
            page = api.get(path + cursor)
            found += [payout["id"] for payout in page.data]
            if not page.json["pagination"]["has_more_pages"]:
                break
            assert len(page.data) == per_page
            if next(added, False):
                api.payout(metadata={"sandbox_scenario": "manual"})
            cursor = f"&cursor={page.json['pagination']['next_cursor']}"
        assert found == there[::-1]

    def fingerprint(self, api: Api) -> str:
        return self.sandbox._core.world.tenants[api.key].fingerprint

    def statuses_in_the_books(self) -> dict[str, str]:
        books = self.sandbox.books
        payouts = {entry.id: entry.status for entry in books.payouts()}
        return payouts | {entry.id: entry.status for entry in books.payments()}

    @invariant()
    def one_effect_for_a_key_and_for_a_reference(self) -> None:
        entries = self.sandbox.books.payouts()
        keys = Counter((entry.key, entry.idempotency_key) for entry in entries if entry.idempotency_key)
        references = Counter((entry.key, entry.reference) for entry in entries if entry.reference)
        assert set(keys.values()) | set(references.values()) <= {1}

    @invariant()
    def final_stays_final(self) -> None:
        tables = {**PAYOUT_STATES, **PAYMENT_STATES}
        present = self.statuses_in_the_books()
        for record_id, before in self.statuses.items():
            assert tables[before] or present[record_id] == before
        self.statuses = present

    @invariant()
    def at_most_one_attempt_succeeds(self) -> None:
        for payment in self.payments():
            completed = [attempt for attempt in payment.attempts if attempt.status == "completed"]
            assert len(completed) == (payment.completed_at is not None)
            assert all(not ATTEMPT_STATES[attempt.status] for attempt in payment.attempts[:-1])

    @invariant()
    def refunds_never_exceed_the_payment(self) -> None:
        for payment in self.payments():
            parts = (payment.refunded, payment.reserved, payment.refundable)
            assert min(parts) >= 0
            assert sum(parts) == (payment.amount if payment.completed_at is not None else 0)
            if payment.refunded:
                whole = payment.refunded == payment.amount
                assert payment.status == ("refunded" if whole else "partially_refunded")


History.TestCase.settings = settings(max_examples=25, stateful_step_count=30, deadline=None)
TestHistory = History.TestCase
