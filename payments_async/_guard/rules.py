"""Judges one write by the rules of a guard, all but its sums. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Context, Decimal
from typing import Any, Final, NamedTuple

from .._codec.payment_body import Payment, parse_payment, read_payment
from .._http.addresses import decoded
from .._validation import rules
from ..errors import GuardRefused
from ..guard import Guard, window_name
from ..models._masking import clean
from ..models._minor_units import MINOR_UNITS, decimals_of
from ..params.operations import Operation, record_of
from .budgets import EXACT, Shortage

_ROUNDING: Final = Context(prec=200)
PAYOUTS: Final = "/payouts"
_ANY: Final = 40
"""More decimals than any amount has."""
_COLLECTING: Final = frozenset({"/payment/checkouts", "/payment/intents"})


class GuardRefusal(NamedTuple):
    """What a rule says against a write."""

    rule: str
    """The guard's word for it, or "body"."""
    text: str
    payment: Payment | None = None
    allowed: Decimal | None = None
    """What would have been allowed, major units."""


class Write(NamedTuple):
    """A write about to be sent."""

    operation: Operation[Any]
    path: str
    headers: Mapping[str, str]
    body: bytes
    is_ours: bool
    """This package wrote the body from a request object."""

    def __repr__(self) -> str:
        return f"<{self.operation.name}>"  # tracebacks print it, and the body has account data

    @property
    def place(self) -> str:
        """The path that a server may take this one for."""
        return self.path if self.is_ours else folded(self.path)

    @property
    def pays_out(self) -> bool:
        """True if it creates a payout."""
        return self.operation.method == "POST" and self.place == PAYOUTS


def folded(path: str) -> str:
    """A path decoded, in small letters, without query and version. It has no empty or dotted segments."""
    place = re.split("[?#;]", decoded(path).lower())[0]
    return place.removeprefix("/v1") if place.startswith("/v1/") else place


def read(write: Write) -> Payment | GuardRefusal:
    """What a write would pay, by its bytes."""
    problem = rules.headers(write.headers) if write.headers else None
    if problem is None:
        found = read_payment(write.body, is_ours=write.is_ours)
        if not isinstance(found, str):
            return found
        problem = found
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
    """Refuse an amount above the most of its currency."""
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
        text = f"its state does not know what was paid within {window}: run `payments guard begin`, or wait"
        return GuardRefusal("begin", text)
    room = max(EXACT.subtract(short.limit, short.used), Decimal(0))
    text = (
        f"{money(amount, short.currency)} is more than is left of the sum of {window}, "
        f"{short.limit}: {room:f} are left now"
    )
    return GuardRefusal("sums", text, None, room)


def refused(operation: str, refusal: GuardRefusal, **facts: Any) -> GuardRefused:
    """The error for a refusal."""
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


class QuickRules:
    """The rules of all guards of a key compiled into one pass over a usual payout's bytes.

    It passes a payout that clearly breaks no rule. It may leave too many to the functions above, and must
    never pass one that they refuse; tests/guard/test_quick.py compares the two.
    """

    def __init__(self, guards: Sequence[Guard], limits: Mapping[str, Sequence[tuple[int, Decimal]]]) -> None:
        self._figures: dict[str, tuple[Decimal, int]] = {}
        for currency in {currency for guard in guards for currency in guard.most}:
            if all(currency in guard.most or guard.other_currencies == "allow" for guard in guards):
                figures = [guard.most[currency] for guard in guards if currency in guard.most]
                figures += [most for _, most in limits.get(currency, ())]
                judged = any(guard.decimals for guard in guards)
                self._figures[currency] = min(figures), MINOR_UNITS.get(currency, _ANY) if judged else _ANY
        self._methods = _in_all(guard.methods for guard in guards)
        self._countries = _in_all(guard.countries for guard in guards)

    def amount_of(self, body: bytes) -> tuple[str, Decimal] | None:
        """The currency and amount of a payout that this package wrote, if it clearly breaks no rule."""
        payment = parse_payment(body)
        figures = self._figures.get(payment.currency)
        if figures is None:
            return None
        text = payment.amount if payment.amount.__class__ is str else str(payment.amount)
        if len(text.partition(".")[2]) > figures[1] or "E" in text or (amount := Decimal(text)) > figures[0]:
            return None
        if self._methods is not None and payment.method not in self._methods:
            return None
        instrument = payment.instrument
        if self._countries is not None and (instrument is None or instrument.country not in self._countries):
            return None
        return payment.currency, amount


def _in_all(rules: Iterable[frozenset[str] | None]) -> frozenset[str] | None:
    """What all rules allow that are set; None if none is."""
    found = [rule for rule in rules if rule is not None]
    return frozenset.intersection(*found) if found else None
