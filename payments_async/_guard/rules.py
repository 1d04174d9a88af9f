"""Judges one write by the rules of a guard, all but its sums. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
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
from .asking import Ask
from .sums import EXACT, Limits, SumFigures

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


def judge(
    guards: Iterable[Guard], limits: Limits, payment: Payment, *, pays_out: bool
) -> Iterator[tuple[Ask | None, GuardRefusal]]:
    """What the rules say against a payment, each with who may lift it. Room in the sums is left out."""
    for guard in guards:
        if refusal := _judge(guard, payment, pays_out=pays_out):
            yield None, refusal
        most = guard.most.get(payment.currency)
        if most is not None and payment.amount > most:
            yield guard.ask, _above("most", "most of one payout", payment, most)
    for seconds, most in limits.get(payment.currency, ()) if pays_out else ():
        if payment.amount > most:  # there will never be room
            yield None, _above("sums", f"sum of {window_name(seconds)}", payment, most)


def _judge(guard: Guard, payment: Payment, *, pays_out: bool) -> GuardRefusal | None:
    """Refuse what one rule forbids, all but figures."""
    currency = payment.currency
    if guard.other_currencies == "refuse" and currency not in guard.most:
        names = ", ".join(sorted(guard.most))
        return GuardRefusal("currency", f"{clean(currency)} is not among its currencies ({names})", payment)
    if guard.decimals and (refusal := _decimals(payment)):
        return refusal
    for rule, value in (("methods", payment.method), ("countries", payment.country)) if pays_out else ():
        allowed = getattr(guard, rule)
        if allowed is not None and value not in allowed:
            shown = clean(value) if isinstance(value, str) else "none"
            text = f"{shown} is not among its {rule} ({', '.join(sorted(allowed))})"
            return GuardRefusal(rule, text, payment)
    return None


def _above(rule: str, figure: str, payment: Payment, most: Decimal) -> GuardRefusal:
    """Refuse an amount above a figure, with a hint for one that looks like cents.

    That is a whole number that would pass as so many cents.
    """
    currency, amount = payment.currency, payment.amount
    text = f"{money(amount, currency)} is above the {figure}, {most}"
    digits = decimals_of(currency)
    if digits and amount == _rounded(amount, 0) and (cents := EXACT.scaleb(amount, -digits)) <= most:
        text += (
            f". A{_example(currency)[1:]}. If {amount:f} was meant as minor units (cents), write "
            f"{_rounded(cents, digits)}, and check earlier payouts: what was not above {most} may have been "
            f"paid {10**digits} times too much"
        )
    return GuardRefusal(rule, text, payment, most)


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


def _example(currency: str) -> str:
    fifty = _rounded(Decimal(50), decimals_of(currency) or 0)
    return f"amounts are major units: 50 is {money(fifty, currency)}"


def no_room(window: SumFigures, amount: Decimal) -> GuardRefusal:
    """What a sum says against an amount for which it has no room now."""
    name = window_name(window.seconds)
    if window.wait:
        text = (
            f"its state does not know all that was paid within {name}, as it is new, was lost or put back "
            "from a copy: wait, or run `payments guard begin` where there is room for all of it"
        )
        return GuardRefusal("begin", text)
    text = (
        f"{money(amount, window.currency)} is more than is left of the sum of {name}, "
        f"{window.most}: {window.left:f} are left now"
    )
    return GuardRefusal("sums", text, None, window.left)


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
