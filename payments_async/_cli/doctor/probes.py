"""What batches assume of the service (docs/bulk.md, A1 to A4), tried with a sandbox key.

A5, that an abandoned request is executed within 15 minutes or never, cannot be tried from here.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, Final

import attrs

from ..._runtime import SYSTEM
from ...client import AsyncPayments
from ...errors import DuplicateReference, PaymentsError, UnprocessableError
from ...models import Payout
from ...params import Instrument
from .checks import Check, error_check

CONCURRENT: Final = 50  # requests with one reference at the same time
READINGS: Final = 6
"""How often the list is read until it shows a payout, five seconds apart."""
_PAUSE: Final = 5.0


@attrs.frozen
class ProbePayout:
    """The payouts to make: each of 1, to one phone number."""

    method: str
    currency: str
    phone: str = attrs.field(repr=False)
    country: str

    def arguments(self, reference: str) -> dict[str, Any]:
        instrument = Instrument.phone(self.phone, self.country)
        metadata = {"made_by": "payments doctor"}
        shared = {"amount": 1, "currency": self.currency, "method": self.method, "metadata": metadata}
        return {**shared, "instrument": instrument, "reference": reference}


async def _replay(client: AsyncPayments, payout: ProbePayout, reference: str) -> Check:
    prepared = client.payouts.prepare(**payout.arguments(reference))
    first: Payout = await client.send(prepared)
    try:
        again: Payout = await client.send(prepared)
    except DuplicateReference:
        return Check(
            "A3", "the same idempotency key gave 409, not the first answer: batches take longer", None
        )
    if again.id != first.id:
        return Check("A3", "VIOLATED: the same idempotency key made a second payout", False)
    marked = "marked as such" if again.response and again.response.replayed else "not marked as such"
    return Check("A3", f"the same idempotency key gave the first answer again, {marked}")


async def _list(client: AsyncPayments, payout: ProbePayout, reference: str) -> Check:
    arguments = payout.arguments(reference)
    made = await client.payouts.create(**arguments)
    for reading in range(READINGS):
        if reading:
            await SYSTEM.sleep(_PAUSE)
        found = await client.payouts.find(reference)
        if found is not None:
            break
    else:
        return Check("A4", f"VIOLATED: the list did not show a payout in {READINGS} readings", False)
    is_same = found.id == made.id and found.metadata == arguments["metadata"]
    if not is_same:
        return Check("A4", "VIOLATED: the list shows the payout with another id or other metadata", False)
    return Check("A4", "the list shows a payout with its reference and metadata")


async def _refusal(client: AsyncPayments, payout: ProbePayout, reference: str) -> Check:
    prepared = client.payouts.prepare(**payout.arguments(reference), extra_body={"amount": 0})
    try:
        await client.send(prepared)
    except UnprocessableError:
        try:
            await client.payouts.create(**payout.arguments(reference))
        except DuplicateReference:
            return Check("A2", "VIOLATED: a payout that was refused with 422 was made", False)
        return Check("A2", "a payout that was refused with 422 was not made")
    return Check("A2", "not tried: the service accepted an amount of 0", None)


async def _reference(client: AsyncPayments, payout: ProbePayout, reference: str) -> Check:
    arguments = payout.arguments(reference)
    calls = (client.payouts.create(**arguments) for _ in range(CONCURRENT))
    answers = await asyncio.gather(*calls, return_exceptions=True)
    made = {each.id for each in answers if isinstance(each, Payout)}
    refused = sum(isinstance(each, DuplicateReference) for each in answers)
    facts = {"made": len(made), "refused": refused, "other": CONCURRENT - len(made) - refused}
    text = f"{CONCURRENT} requests with one reference at the same time made {len(made)} payout(s)"
    if len(made) > 1:
        return Check("A1", f"VIOLATED: {text}: run no batches", False, facts=facts)
    if len(made) + refused < CONCURRENT or not made:
        others = {type(each).__name__ for each in answers if not isinstance(each, Payout)}
        return Check("A1", f"{text}; the others: {', '.join(sorted(others))}; try again", False, facts=facts)
    return Check("A1", text, facts=facts)


PROBES: Final[Mapping[str, Callable[[AsyncPayments, ProbePayout, str], Awaitable[Check]]]] = {
    "A3": _replay,
    "A4": _list,
    "A2": _refusal,
    "A1": _reference,
}
"""The first also shows whether the project can make such payouts at all."""


async def run_probes(client: AsyncPayments, payout: ProbePayout) -> AsyncIterator[Check]:
    """Try each assumption, with references of this run's own."""
    run = SYSTEM.token(6).hex()
    is_possible = True
    for name, probe in PROBES.items():
        if not is_possible:
            yield Check(name, "not tried: A3 did not get its payout", None)
            continue
        try:
            yield await probe(client, payout, f"doctor-{run}-{name}")
        except PaymentsError as error:
            yield _error(name, error)
            is_possible = name != "A3"
    yield Check("A5", "not tried: it takes 15 minutes, and a request that is stuck in the service", None)


def _error(name: str, error: PaymentsError) -> Check:
    """The finding of an error. A sandbox payout in doubt needs no resolving: the next run makes others."""
    if error.effect != "unknown":
        return error_check(name, error)
    tries = ", ".join(attempt.reason for attempt in error.attempts)
    text = f"no definite answer ({tries}): try again"
    return Check(name, text, False, facts={"error": type(error).__name__, "message": text})
