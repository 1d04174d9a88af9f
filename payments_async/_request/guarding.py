"""Asks the guard of a key about a call, and tells it how the call ended."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from .._runtime import Runtime
from ..errors import APIStatusError, DuplicateReference, GuardRefused, PaymentsError
from ..models._response import is_replayed
from . import notify
from .call import Call
from .settings import Settings

if TYPE_CHECKING:
    from .._guard.budgets import Outcome
    from .._guard.key_guard import KeyGuard


def admit_at_once(guard: KeyGuard, call: Call) -> bool:
    """Have a usual payout judged, without waiting; False if that takes more.

    Reads are not judged, nor are later attempts.
    """
    body, key = call.body, call.idempotency_key
    if body is None or key is None or call.tries:
        return True
    if call.request is None or call.headers:
        return False
    admission = guard.admit_at_once(call.path, body, key)
    if admission is False:
        return False
    call.admission = admission
    return True


async def admit(guard: KeyGuard, call: Call, settings: Settings, runtime: Runtime) -> None:
    """Have a write judged before its first attempt. Raises GuardRefused, LimitStoreUnavailable."""
    from .._guard.rules import Write  # loaded with the guard

    assert call.body is not None
    write = Write(call.operation, call.path, call.headers, call.body, is_ours=call.request is not None)
    with _reported(call, settings):
        left = call.left(runtime.monotonic)
        call.admission = await guard.admit(write, call.idempotency_key or "", left)


async def renew(call: Call, settings: Settings, runtime: Runtime) -> None:
    """Renew what the guard has reserved, so that another attempt may begin.

    Raises the call's error when there is no room any more, or when the sums cannot be read.
    """
    assert call.admission is not None
    with _reported(call, settings):
        await call.admission.renew(call.left(runtime.monotonic))


@contextmanager
def _reported(call: Call, settings: Settings) -> Iterator[None]:
    """Report a refusal, and raise the call's error."""
    try:
        yield
    except PaymentsError as error:
        if isinstance(error, GuardRefused):
            notify.refused(settings.emitter, call, error)
        ended = call.conclusion(error)
        if ended is error:
            raise
        raise ended from error


def settle(call: Call, error: BaseException | None) -> None:
    """Tell the guard what became of the money."""
    if call.admission is not None:
        call.admission.settle(outcome_of(call, error))


def outcome_of(call: Call, error: BaseException | None) -> Outcome | None:
    """What a call's end proves about its money; None when it proves nothing."""
    effect = error.effect if isinstance(error, PaymentsError) else call.effect
    if error is None or effect == "happened":
        return "paid"
    if effect == "unknown":
        return None
    if isinstance(error, APIStatusError) and is_replayed(error.headers):
        return "never"
    sent = [attempt for attempt in call.attempts if attempt.verdict != "not_sent"]
    return None if isinstance(error, DuplicateReference) and len(sent) > 1 else "unpaid"
