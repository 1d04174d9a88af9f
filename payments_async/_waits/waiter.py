"""Waiting for a record to become final, on readings that all waits of a client share."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from datetime import datetime
from operator import attrgetter
from typing import Any, Final, Literal, Self, TypeVar
from weakref import WeakKeyDictionary

import attrs

from .._attrs import ValueMixin
from .._request import prepare
from .._request.pages import PAYMENT_INTENTS, PAYOUTS
from .._request.pipeline import Pipeline
from .._request.settings import positive
from .._runtime import event_loop
from .._validation import rules
from ..errors import InvalidRequest, WaitTimeout
from ..models import Checkout, PaymentAttempt, PaymentIntent, Payout, Record
from ..models._masking import clean
from ..params.operations import CHECKOUTS_RETRIEVE, INTENTS_RETRIEVE_ATTEMPT, Operation, id_problems
from . import schedule
from .sweep import PASSING, Days, ListSweep, Wanted, day_of

R = TypeVar("R")
Kind = Literal["payout", "checkout", "attempt"]

_WANTED: Mapping[Kind, str] = {
    "payout": "a Payout, its id or a WaitTimeout's token",
    "checkout": "a Checkout, its id or a WaitTimeout's token",
    "attempt": "the payment's id or a WaitTimeout's token",
}
"""The arguments that each wait accepts, in words."""

_IS_FINAL: Final = attrgetter("is_final")
_SOON: Final = 0.2  # seconds between two checks whether another wait has read a record


@attrs.frozen(eq=False, repr=False)
class WaitTarget(ValueMixin):
    """The record that a wait is for. As JSON it is the token that continues the wait in another process."""

    kind: Kind
    id: str  # id of the payout, checkout or payment intent
    attempt_id: str | None = None
    created_at: datetime | None = None
    """Creation time of the record, where known: older pages of the list are not read."""

    def token(self) -> str:
        """The target as JSON text."""
        at = self.created_at.isoformat() if self.created_at else None
        return json.dumps({"v": 1, "kind": self.kind, "id": self.id, "attempt": self.attempt_id, "at": at})

    @classmethod
    def read(cls, kind: Kind, given: object, attempt_id: str | None = None) -> Self:
        """Read the target from a record, an id or a token. Raises InvalidRequest."""
        if isinstance(given, str) and given.startswith("{"):
            target = cls._from_token(given)
            if target is not None and target.kind == kind:
                return target
            problem = f"is not the token of {'an' if kind == 'attempt' else 'a'} {kind}'s wait"
            raise InvalidRequest({"token": [problem]}, operation="wait")
        name = f"{'payment_intent' if kind == 'attempt' else kind}_id"
        faults = id_problems({name: given})
        if not isinstance(given, str):
            faults[name] = [f"must be {_WANTED[kind]}, not {rules.kind(given)}"]
        if kind == "attempt":
            missing = {"attempt_id": ["is required"]}
            faults |= missing if attempt_id is None else id_problems({"attempt_id": attempt_id})
        if faults:
            raise InvalidRequest(faults, operation="wait")
        return cls(kind, str(given), attempt_id)

    @classmethod
    def _from_token(cls, text: str) -> Self | None:
        try:
            tree = json.loads(text)
            if tree["v"] != 1 or id_problems({"id": tree["id"]}):
                return None
            if tree["kind"] == "attempt" and id_problems({"id": tree["attempt"]}):
                return None
            at = datetime.fromisoformat(tree["at"]) if tree["at"] else None
            return cls(tree["kind"], tree["id"], tree["attempt"], at)
        except (KeyError, TypeError, ValueError, RecursionError):
            return None


@attrs.define(eq=False, repr=False)
class _SingleReading:
    """One reading of one record."""

    began: float
    record: Any = None
    """The record; None while the reading is under way, and when it failed."""


class _LoopReadings:
    """What the waits of one event loop share: a transaction is read at most every five seconds (Limits)."""

    def __init__(self, pipeline: Pipeline) -> None:
        self.payouts = ListSweep(pipeline, PAYOUTS)
        self.intents = ListSweep(pipeline, PAYMENT_INTENTS)
        self._singles: OrderedDict[tuple[str, ...], _SingleReading] = OrderedDict()
        """The records that were read singly in the last five seconds."""

    def find(self, what: tuple[str, ...], since: float) -> Any:
        """The record, if a reading that began at `since` or later has ended; otherwise None."""
        reading = self._singles.get(what)
        return None if reading is None or reading.began < since else reading.record

    def begin(self, what: tuple[str, ...], now: float) -> _SingleReading | None:
        """Begin a reading; None when it would be too early. The caller sets its `record`."""
        while self._singles and next(iter(self._singles.values())).began + schedule.FLOOR <= now:
            self._singles.popitem(last=False)
        if what in self._singles:
            return None
        reading = self._singles[what] = _SingleReading(now)
        return reading


@attrs.frozen(eq=False, repr=False)
class _Wait:
    """One wait: its target and its end."""

    target: WaitTarget
    until: float  # end of the wait's time, on the monotonic clock
    readings: _LoopReadings


class Waiting:
    """The waits of one client, and the lookups of its webhook receivers."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._loops: WeakKeyDictionary[asyncio.AbstractEventLoop, _LoopReadings] = WeakKeyDictionary()

    def sweeps(self) -> tuple[ListSweep, ListSweep]:
        """The readings of payouts and of payments on the running event loop."""
        readings = self._readings()
        return readings.payouts, readings.intents

    async def payout(self, payout: Payout | str, deadline: float) -> Payout:
        """The payout when it is final. Raises WaitTimeout."""
        if isinstance(payout, Payout) and payout.is_final:
            return payout
        wait = self._wait(_target("payout", payout), deadline)
        wanted = Wanted([("id", wait.target.id)], _IS_FINAL, days=Days(day_of(wait.target.created_at)))
        wanted.last = payout if isinstance(payout, Payout) else None
        with self._reminding(wait):
            final: Payout = await self._until(wait, wait.readings.payouts, wanted)
        return final

    async def checkout(self, checkout: Checkout | str, deadline: float) -> Checkout:
        """The checkout when its payment is final. Raises WaitTimeout."""
        wait = self._wait(_target("checkout", checkout), deadline)
        with self._reminding(wait):
            return await self._checkout(wait, checkout)

    async def _checkout(self, wait: _Wait, checkout: Checkout | str) -> Checkout:
        ids, just_read = {"checkout_id": wait.target.id}, not isinstance(checkout, Checkout)
        if not isinstance(checkout, Checkout):
            checkout = await self._read(wait, CHECKOUTS_RETRIEVE, ids, None)
        unseen = 0
        while (payment := checkout.payment) is None or not payment.id:
            if payment is not None and payment.is_final:
                return checkout
            await self._rest(wait, unseen)
            unseen, just_read = unseen + 1, True
            checkout = await self._read(wait, CHECKOUTS_RETRIEVE, ids, checkout)
        if payment.is_final:
            return checkout
        intents = wait.readings.intents
        wanted = Wanted([("id", payment.id)], _IS_FINAL, days=Days(day_of(payment.created_at)))
        listed = await self._until(wait, intents, wanted, checkout, just_read=just_read)
        fresh = await self._read(wait, CHECKOUTS_RETRIEVE, ids, checkout, since=intents.page_at)
        return _with_listed(fresh, listed)

    async def _rest(self, wait: _Wait, unchanged: int) -> None:
        """Sleep until the record may be read again, or the wait's time is over."""
        runtime = self._pipeline.runtime
        rest = schedule.interval(unchanged, 0, runtime.random())
        await runtime.sleep(max(min(rest, wait.until - runtime.monotonic()), 0.0))

    async def attempt(
        self, payment_intent_id: str, attempt_id: str | None, deadline: float
    ) -> PaymentAttempt:
        """The attempt when it is final. Raises WaitTimeout."""
        wait = self._wait(WaitTarget.read("attempt", payment_intent_id, attempt_id), deadline)
        with self._reminding(wait):
            return await self._attempt(wait)

    async def _attempt(self, wait: _Wait) -> PaymentAttempt:
        wanted = str(wait.target.attempt_id)
        ids = {"payment_intent_id": wait.target.id, "attempt_id": wanted}
        last: PaymentAttempt | None = None
        listed: PaymentIntent | None = None
        while True:
            since = wait.readings.intents.page_at if last else None
            attempt = await self._read(wait, INTENTS_RETRIEVE_ATTEMPT, ids, last, since=since)
            if attempt.is_final:
                return attempt
            intent = Wanted([("id", wait.target.id)], _moved_on(wanted), last=listed)
            sweep, same = wait.readings.intents, attempt == last
            listed = await self._until(wait, sweep, intent, attempt, just_read=True, unchanged=same)
            last = attempt

    def _reminding(self, wait: _Wait) -> AbstractContextManager[None]:
        """Context of a wait that is in the log as long as it lasts."""
        text = f"wait: the {wait.target.kind} {clean(wait.target.id)} is not final yet"
        return self._pipeline.reminder.during(lambda: text, logging.INFO)

    def _wait(self, target: WaitTarget, deadline: float) -> _Wait:
        if not positive(deadline):
            raise InvalidRequest({"deadline": ["must be a positive number of seconds"]}, operation="wait")
        return _Wait(target, self._pipeline.runtime.monotonic() + deadline, self._readings())

    def _readings(self) -> _LoopReadings:
        loop = event_loop()
        readings = self._loops.get(loop)
        if readings is None:
            readings = self._loops[loop] = _LoopReadings(self._pipeline)
        return readings

    async def _until(
        self,
        wait: _Wait,
        sweep: ListSweep,
        wanted: Wanted,
        last: Record | None = None,
        *,
        just_read: bool = False,
        unchanged: bool = False,
    ) -> Any:
        """Read the list until the wait ends. WaitTimeout has `last`, or the record as last listed."""
        sweep.expect(just_read=just_read, unchanged=unchanged)
        record = await sweep.find(wanted, wait.until)
        if record is None:
            seen = just_read or wanted.is_seen
            raise _timed_out(wait, last or wanted.last, seen, sweep.problem) from sweep.problem
        return record

    async def _read(
        self,
        wait: _Wait,
        operation: Operation[R],
        ids: dict[str, str],
        last: Record | None,
        *,
        since: float | None = None,
    ) -> R:
        """Read one record within the wait's time, again after errors that may pass.

        Uses another wait's reading of the record, if it is of the last five seconds and not before `since`.
        """
        runtime, problem, failures = self._pipeline.runtime, None, 0
        readings, what = wait.readings, (operation.name, *ids.values())
        since = runtime.monotonic() - schedule.FLOOR if since is None else since
        while (left := wait.until - (now := runtime.monotonic())) > 0:
            known: R | None = readings.find(what, since)
            if known is not None:
                return known
            reading = readings.begin(what, now)
            if reading is None:  # another wait reads it, or has just read it
                await runtime.sleep(min(_SOON, left))
                continue
            try:
                reading.record = await self._pipeline.run(prepare.reading(operation, {"deadline": left}, ids))
            except PASSING as error:
                problem = error
            else:
                record: R = reading.record
                return record
            await self._rest(wait, failures)
            failures += 1
        raise _timed_out(wait, last, last is not None, problem) from problem


def _target(kind: Kind, given: Payout | Checkout | str) -> WaitTarget:
    cls: type[Payout | Checkout] = Payout if kind == "payout" else Checkout
    if not isinstance(given, cls):
        return WaitTarget.read(kind, given)
    created = given.created_at if isinstance(given, Payout) else None
    return attrs.evolve(WaitTarget.read(kind, given.id), created_at=created)


def _moved_on(attempt_id: str) -> Callable[[PaymentIntent], bool]:
    """Make the test whether a listed intent shows that the attempt is worth reading again."""

    def ends(intent: PaymentIntent) -> bool:
        active = intent.active_attempt
        return active is None or active.id != attempt_id or active.is_final or intent.is_final

    return ends


def _with_listed(checkout: Checkout, listed: PaymentIntent) -> Checkout:
    """The checkout with its payment's status from the list: the checkout itself may lack it."""
    payment = checkout.payment
    if payment is None or payment.status is not None:
        return checkout
    known = attrs.evolve(payment, status=listed.status, expired_at=payment.expired_at or listed.expired_at)
    return attrs.evolve(checkout, payment=known)


def _timed_out(wait: _Wait, last: Any, seen: bool, problem: Exception | None) -> WaitTimeout:
    parts = [f"the {wait.target.kind} was not final in time"]
    if not seen:
        parts.append("it was never seen: check its id and the environment")
    if problem is not None:
        parts.append(f"the latest reading failed ({problem})")
    parts.append("wait again with error.token, here or elsewhere")
    return WaitTimeout("; ".join(parts), last=last, token=wait.target.token(), operation="wait")
