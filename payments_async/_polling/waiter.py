"""Waiting for a record to become final, on readings that all waits of a key share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final, TypeVar
from weakref import WeakKeyDictionary

import attrs

from .. import models
from .._request import prepare
from .._request.pages import PAYMENT_INTENTS, PAYOUTS
from .._request.pipeline import Pipeline
from .._runtime import event_loop
from ..errors import InvalidRequest, WaitTimeout
from ..models import Checkout, PaymentAttempt, PaymentIntent, Payout, Record
from ..params.operations import (
    CHECKOUTS_RETRIEVE,
    INTENTS_RETRIEVE_ATTEMPT,
    Operation,
)
from . import schedule
from .list_poller import PASSING, ListPoller
from .readings import Readings, Subscription, readings_of
from .schedule import WaitTarget

R = TypeVar("R")

_SOON: Final = 0.2
"""Seconds after which to look again whether another wait has read a record."""


@attrs.frozen(eq=False, repr=False)
class _Sweeps:
    """The sweeps of one event loop, and what they share with others."""

    readings: Readings
    payouts: ListPoller
    intents: ListPoller


@attrs.frozen(eq=False, repr=False)
class _Wait:
    """One wait: what for, and until when."""

    target: WaitTarget
    until: float
    """On the monotonic clock."""
    sweeps: _Sweeps
    """Those of its event loop, and of the key as it began."""

    @property
    def listed_at(self) -> float:
        """When the list of payments last said something."""
        return self.sweeps.readings.intents.page_at


class Waiting:
    """The waits of one client."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._loops: WeakKeyDictionary[asyncio.AbstractEventLoop, _Sweeps] = WeakKeyDictionary()

    async def payout(self, payout: Payout | str, deadline: float) -> Payout:
        """The payout when it is final. Raises WaitTimeout."""
        if isinstance(payout, Payout) and payout.is_final:
            return payout
        wait = self._wait(_target("payout", payout), deadline)
        seen = payout if isinstance(payout, Payout) else None
        watch = _watch(wait.target.id, wait.target.created_at, _is_final, seen)
        found: Payout = await self._until(wait, wait.sweeps.payouts, watch)
        return found

    async def checkout(self, checkout: Checkout | str, deadline: float) -> Checkout:
        """The checkout when its payment is final. Raises WaitTimeout."""
        wait = self._wait(_target("checkout", checkout), deadline)
        ids, just_read = {"checkout_id": wait.target.id}, not isinstance(checkout, models.Checkout)
        if not isinstance(checkout, models.Checkout):
            checkout = await self._read(wait, CHECKOUTS_RETRIEVE, ids, None)
        unseen = 0
        while (payment := checkout.payment) is None or payment.id is None:
            if payment is not None and payment.is_final:
                return checkout
            await self._rest(wait, unseen)
            unseen, just_read = unseen + 1, True
            checkout = await self._read(wait, CHECKOUTS_RETRIEVE, ids, checkout)
        if payment.is_final:
            return checkout
        watch = _watch(payment.id, payment.created_at, _is_final)
        listed = await self._until(wait, wait.sweeps.intents, watch, checkout, just_read=just_read)
        fresh = await self._read(wait, CHECKOUTS_RETRIEVE, ids, checkout, since=wait.listed_at)
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
        wanted = str(wait.target.attempt_id)
        ids = {"payment_intent_id": wait.target.id, "attempt_id": wanted}
        last: PaymentAttempt | None = None
        listed: PaymentIntent | None = None
        while True:
            since = wait.listed_at if last else None
            attempt = await self._read(wait, INTENTS_RETRIEVE_ATTEMPT, ids, last, since=since)
            if attempt.is_final:
                return attempt
            watch = _watch(wait.target.id, None, _moved_on(wanted), listed)
            sweep, same = wait.sweeps.intents, attempt == last
            listed = await self._until(wait, sweep, watch, attempt, just_read=True, unchanged=same)
            last = attempt

    def _wait(self, target: WaitTarget, deadline: float) -> _Wait:
        if not prepare.positive(deadline):
            raise InvalidRequest({"deadline": ["must be a positive number of seconds"]}, operation="wait")
        return _Wait(target, self._pipeline.runtime.monotonic() + deadline, self._sweeps())

    def _sweeps(self) -> _Sweeps:
        """Those of the running loop and the key of now."""
        loop, pipeline = event_loop(), self._pipeline
        readings = readings_of(pipeline.keys.of(pipeline.settings.key()).limiter)
        sweeps = self._loops.get(loop)
        if sweeps is None or sweeps.readings is not readings:
            sweeps = self._loops[loop] = _Sweeps(
                readings,
                ListPoller(pipeline, PAYOUTS, readings.payouts),
                ListPoller(pipeline, PAYMENT_INTENTS, readings.intents),
            )
        return sweeps

    async def _until(
        self,
        wait: _Wait,
        sweep: ListPoller,
        watch: Subscription,
        last: Record | None = None,
        *,
        just_read: bool = False,
        unchanged: bool = False,
    ) -> Any:
        """Watch the list until the watch ends; WaitTimeout holds `last`, or the record as last listed."""
        watch.until = wait.until
        left = wait.until - self._pipeline.runtime.monotonic()
        timer = self._pipeline.runtime.call_later(max(left, 0.0), watch.give_up)
        sweep.join(watch, just_read=just_read, unchanged=unchanged)
        try:
            found = await watch.future
        finally:
            timer.cancel()
            sweep.leave(watch)
        if found is None:
            seen = just_read or watch.seen
            raise _timed_out(wait, last or watch.last, seen, sweep.trouble) from sweep.trouble
        return found

    async def _read(
        self,
        wait: _Wait,
        operation: Operation[R],
        ids: dict[str, str],
        last: Record | None,
        *,
        since: float | None = None,
    ) -> R:
        """Read one record, within the wait's time; what may pass is waited out.

        What another wait of the key has read in the last five seconds, or `since` then, is taken instead.
        """
        runtime, trouble, failures = self._pipeline.runtime, None, 0
        records, what = wait.sweeps.readings.records, (operation.name, *ids.values())
        since = runtime.monotonic() - schedule.FLOOR if since is None else since
        while (left := wait.until - (now := runtime.monotonic())) > 0:
            known: R | None = records.find(what, since)
            if known is not None:
                return known
            reading = records.begin(what, now)
            if reading is None:  # another wait is at it, or was a moment ago
                await runtime.sleep(min(_SOON, left))
                continue
            try:
                reading.record = await self._pipeline.run(prepare.reading(operation, {"deadline": left}, ids))
            except PASSING as error:
                trouble = error
            else:
                record: R = reading.record
                return record
            await self._rest(wait, failures)
            failures += 1
        raise _timed_out(wait, last, last is not None, trouble) from trouble


def _target(kind: Any, given: Payout | Checkout | str) -> WaitTarget:
    cls: type[Payout | Checkout] = Payout if kind == "payout" else models.Checkout
    if not isinstance(given, cls):
        return WaitTarget.read(kind, given)
    created = given.created_at if isinstance(given, Payout) else None
    return attrs.evolve(WaitTarget.read(kind, given.id), created_at=created)


def _watch(
    record_id: str, created_at: datetime | None, ends: Callable[[Any], bool], seen: Record | None = None
) -> Subscription:
    """A watch for the running loop; `seen` is the record as the caller knows it."""
    return Subscription(record_id, created_at, ends, event_loop().create_future(), seen)


def _is_final(record: Payout | PaymentIntent) -> bool:
    return record.is_final


def _moved_on(attempt_id: str) -> Callable[[PaymentIntent], bool]:
    """Whether a listed intent says that the attempt is worth reading again."""

    def ends(intent: PaymentIntent) -> bool:
        active = intent.active_attempt
        return active is None or active.id != attempt_id or active.is_final or intent.is_final

    return ends


def _with_listed(checkout: Checkout, listed: PaymentIntent) -> Checkout:
    """The list form tells the status; the checkout form may not, and a caller wants to see it."""
    payment = checkout.payment
    if payment is None or payment.status is not None:
        return checkout
    known = attrs.evolve(payment, status=listed.status, expired_at=payment.expired_at or listed.expired_at)
    return attrs.evolve(checkout, payment=known)


def _timed_out(wait: _Wait, last: Any, seen: bool, trouble: Exception | None) -> WaitTimeout:
    told = [f"the {wait.target.kind} was not final in time"]
    if not seen:
        told.append("it was never seen: check its id and the environment")
    if trouble is not None:
        told.append(f"the latest reading failed ({trouble})")
    told.append("wait again with error.token, here or elsewhere")
    return WaitTimeout("; ".join(told), last=last, token=wait.target.token(), operation="wait")
