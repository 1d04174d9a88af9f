"""Judges one write by the rules of a guard, all but its sums. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from decimal import Context, Decimal
from typing import Any, Final, NamedTuple

from .._codec.payment_body import Payment, read_payment
from .._http.addresses import decoded
from .._validation import rules
from ..errors import GuardRefused
from ..guard import Guard, window_name
from ..models._masking import clean
from ..models._minor_units import decimals_of
from ..params.operations import Operation, record_of
from .sums import EXACT, Shortage

_ROUNDING: Final = Context(prec=200)
PAYOUTS: Final = "/payouts"
_COLLECTING: Final = frozenset({"/payment/checkouts", "/payment/intents"})


class GuardRefusal(NamedTuple):
    """What a rule says against a write."""

    rule: str  # the guard's word for it, or "body"
    text: str
    payment: Payment | None = None
    allowed: Decimal | None = None  # what would have been allowed, major units


class Write(NamedTuple):
    operation: Operation[Any]
    path: str
    headers: Mapping[str, str]
    body: bytes
    is_ours: bool  # this package wrote the body from a request object

    def __repr__(self) -> str:
        return f"<{self.operation.name}>"  # tracebacks print it, and the body has account data

    @property
    def place(self) -> str:
        """The path that a server may take this one for."""
        return self.path if self.is_ours else folded(self.path)

    @property
    def pays_out(self) -> bool:
        return self.operation.method == "POST" and self.place == PAYOUTS


def folded(path: str) -> str:
    """A path decoded, in small letters, without query and version. It has no empty or dotted segments."""
    place = re.split("[?#;]", decoded(path).lower())[0]
    return place.removeprefix("/v1") if place.startswith("/v1/") else place


def read(write: Write) -> Payment | GuardRefusal:
    """What a write would pay, by its bytes."""
    problem = rules.headers(write.headers) if write.headers else None
    found = problem or read_payment(write.body, is_ours=write.is_ours)
    return unreadable(found) if isinstance(found, str) else found


def unreadable(problem: str) -> GuardRefusal:
    """The refusal of a write that cannot be read without doubt."""
    return GuardRefusal("body", f"the guard cannot read it: it {problem}")


def is_judged(guard: Guard, write: Write) -> bool:
    """Whether a guard judges the content of a write."""
    return write.pays_out or (
        guard.collecting and write.operation.method == "POST" and write.place in _COLLECTING
    )


def judge_path(guard: Guard, write: Write) -> GuardRefusal | None:
    """Refuse a write to a path that is exactly no operation of the interface."""
    method, place = write.operation.method, write.path.partition("?")[0]
    if guard.other_writes == "allow" or record_of(method, place)[0] is not None:
        return None
    return GuardRefusal(
        "other_writes",
        f"{method} {clean(place)} is no operation of the interface, and under a guard only those write: "
        "other_writes='allow' opens it",
    )


def judge(guard: Guard, payment: Payment, *, pays_out: bool) -> GuardRefusal | None:
    """Refuse what one rule forbids, all but `most`."""
    currency = payment.currency
    if guard.other_currencies == "refuse" and currency not in guard.most:
        names = ", ".join(sorted(guard.most))
        return GuardRefusal("currency", f"{clean(currency)} is not among its currencies ({names})", payment)
    if guard.decimals and (refusal := _decimals(payment)):
        return refusal
    if not pays_out:
        return None
    if guard.methods is not None and payment.method not in guard.methods:
        return _outside("methods", payment.method, payment, guard.methods)
    if guard.countries is not None and payment.country not in guard.countries:
        return _outside("countries", payment.country, payment, guard.countries)
    return None


def judge_most(guard: Guard, payment: Payment) -> GuardRefusal | None:
    most = guard.most.get(payment.currency)
    if most is None or payment.amount <= most:
        return None
    text = f"{money(payment.amount, payment.currency)} is above the most of one payout, {most}"
    return GuardRefusal("most", text + _minor_units(payment, most), payment, most)


def judge_sums(limits: Iterable[tuple[int, Decimal]], payment: Payment) -> GuardRefusal | None:
    """Refuse an amount that is above a whole sum, for which there will never be room."""
    for seconds, most in limits:
        if payment.amount > most:
            shown = money(payment.amount, payment.currency)
            text = f"{shown} is above the sum of {window_name(seconds)}, {most}"
            return GuardRefusal("sums", text + _minor_units(payment, most), payment, most)
    return None


def _decimals(payment: Payment) -> GuardRefusal | None:
    digits = decimals_of(payment.currency)
    amount = payment.amount
    if digits is None or amount == (rounded := _rounded(amount, digits)):
        return None
    has = "no decimals" if digits == 0 else f"{digits} decimals"
    text = (
        f"{money(amount, payment.currency)} has more decimals than the currency, which has {has} (ISO 4217)"
    )
    return GuardRefusal("decimals", f"{text}; {_example(payment.currency)}", payment, rounded)


def _rounded(amount: Decimal, digits: int) -> Decimal:
    return _ROUNDING.quantize(amount, Decimal(1).scaleb(-digits))


def _minor_units(payment: Payment, most: Decimal) -> str:
    """A hint for amounts that look like cents: a whole number that would pass as so many cents."""
    digits = decimals_of(payment.currency)
    amount = payment.amount
    if not digits or amount != _rounded(amount, 0) or EXACT.scaleb(amount, -digits) > most:
        return ""
    meant = EXACT.quantize(EXACT.scaleb(payment.amount, -digits), Decimal(1).scaleb(-digits))
    hint = f"If {amount:f} was meant as minor units (cents), write {meant}, and check earlier payouts"
    passed = f"what was not above {most} may have been paid {10**digits} times too much"
    return f". A{_example(payment.currency)[1:]}. {hint}: {passed}"


def _example(currency: str) -> str:
    fifty = EXACT.quantize(Decimal(50), Decimal(1).scaleb(-(decimals_of(currency) or 0)))
    return f"amounts are major units: 50 is {money(fifty, currency)}"


def _outside(rule: str, value: object, payment: Payment, allowed: Any) -> GuardRefusal:
    shown = clean(value) if isinstance(value, str) else "none"
    return GuardRefusal(rule, f"{shown} is not among its {rule} ({', '.join(sorted(allowed))})", payment)


def no_room(short: Shortage, amount: Decimal) -> GuardRefusal:
    """What the sums say against an amount for which they have no room now."""
    window = window_name(short.window)
    if not short.is_known:
        text = (
            f"its state does not know all that was paid within {window}, as it is new, was lost or put back "
            "from a copy: wait, or run `payments guard begin` where there is room for all of it"
        )
        return GuardRefusal("begin", text)
    room = max(EXACT.subtract(short.limit, short.used), Decimal(0))
    text = (
        f"{money(amount, short.currency)} is more than is left of the sum of {window}, "
        f"{short.limit}: {room:f} are left now"
    )
    return GuardRefusal("sums", text, None, room)


def refused(operation: str, refusal: GuardRefusal, **facts: Any) -> GuardRefused:
    payment = refusal.payment
    room_at = facts.get("room_at")
    then = f"; there may be room at {room_at:%Y-%m-%d %H:%M:%S} UTC" if room_at else ""
    return GuardRefused(
        f"{operation}: the guard refused it, and nothing was sent (rule {refusal.rule}): "
        f"{refusal.text}{then}",
        rule=refusal.rule,
        amount=None if payment is None else payment.amount,
        currency=None if payment is None else payment.currency,
        allowed=refusal.allowed,
        operation=operation,
        **facts,
    )


def money(amount: Decimal, currency: str) -> str:
    """An amount as text, such as GHS 50.00."""
    return f"{clean(currency)} {amount:f}"
