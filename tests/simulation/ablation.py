"""The protocol without one of its rules: functions of the real protocol are replaced by careless ones.

A function is replaced wherever it was imported, in the real engine as in the model, so that the shipped code
needs no switch. A rule that can go without harm, or whose absence is not noticed, would not be tested.
"""

from __future__ import annotations

import contextlib
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import attrs

from payments_async._assumptions import LIST_SETTLES
from payments_async.bulk._protocol import (
    attempts,
    clocks,
    matching,
    outcomes,
    row_state,
    rows_in_doubt,
    stop_rules,
)
from payments_async.bulk._protocol.attempts import Kind, Step
from payments_async.bulk._protocol.clocks import ElapsedRange
from payments_async.bulk._protocol.identifiers import Identity
from payments_async.bulk._protocol.matching import Match
from payments_async.bulk._protocol.outcomes import Outcome, count_rows
from payments_async.bulk._protocol.row_state import RowState

from . import worker
from .plan import DAY

Make = Callable[[Any], Callable[..., Any]]
"""The careless function, made of the real one."""
Ablation = tuple[Any, str, Make]
"""A module or class, the name of its function, and what replaces it."""
_PACKAGES: Final = ("payments_async.bulk", "tests.simulation")
_SETTLED: Final = (RowState.CREATED, RowState.CONFLICT)


def always(result: Any) -> Make:
    """A function with this result, whatever it is asked."""
    return lambda _: lambda *_args, **_facts: result


def _given(**facts: Any) -> Make:
    """The real function, with these keyword arguments whatever it is asked."""
    return lambda real: lambda *args, **asked: real(*args, **{**asked, **facts})


def _evolved(**changes: Any) -> Make:
    """The real function, whose first argument has these fields."""
    return lambda real: lambda first, *args, **facts: real(attrs.evolve(first, **changes), *args, **facts)


def _after(kinds: Mapping[Kind, Step]) -> Ablation:
    """Other steps after attempts of these kinds, whatever else is in doubt."""

    def make(real: Any) -> Callable[..., Step]:
        return lambda reply, **facts: kinds.get(attempts.kind_of(reply)) or real(reply, **facts)

    return attempts, "after_attempt", make


def _loose_change(state: RowState) -> Make:
    """A change that every row allows whose end is not known."""

    def make(real: Any) -> Callable[..., Any]:
        def change(known: row_state.RowKnowledge) -> Any:
            revision = known.revision + (state is RowState.NEW)
            loose = attrs.evolve(known, state=state, revision=revision)
            return real(known) if known.state in _SETTLED else loose

        return change

    return make


def _by_wall_clock(real: Any) -> Callable[..., ElapsedRange]:
    def age(then: Any, now: Any, seen: Any = None) -> ElapsedRange:
        found: ElapsedRange = real(then, now, seen)
        wall = max(0.0, clocks.passed(then, now)[0])
        return found if found.at_most == math.inf else attrs.evolve(found, at_most=wall)

    return age


def _any_content(real: Any) -> Callable[..., Match]:
    def match_of(*args: Any) -> Match:
        found: Match = real(*args)
        return Match.EQUAL if found is Match.OTHER_BODY else found

    return match_of


def _here(real: Any) -> Callable[..., Any]:
    def account_mismatch(ledger: Any, here: Any, **facts: Any) -> Any:
        place = {"environment": ledger.environment, "base_url": ledger.base_url}
        return real(ledger, attrs.evolve(here, **place), **facts)

    return account_mismatch


_ANY_BYTES: Final = _given(same_bytes=True)
ABLATIONS: Final[Mapping[str, tuple[Ablation, ...]]] = {
    # Identifiers
    "stable_reference": ((worker, "reference_prefix", lambda _: lambda host, _body: f"{host}-"),),
    "body_free_reference": ((worker, "reference_prefix", lambda _: lambda _host, body: body.content[:8]),),
    "reference_names_generation": ((Identity, "reference", _evolved(generation=0)),),
    "key_names_generation": ((Identity, "idempotency_key", _evolved(generation=0)),),
    "key_names_body": ((Identity, "idempotency_key", lambda real: lambda row, _body: real(row, "")),),
    "key_names_epoch": ((Identity, "idempotency_key", _evolved(epoch=0)),),
    "key_names_revision": ((Identity, "idempotency_key", _evolved(revision=0)),),
    # What follows an attempt
    "silence_is_doubt": (_after({Kind.SILENT: Step.REJECT}),),
    "server_error_is_doubt": (_after({Kind.FAILED: Step.REJECT}),),
    "unreadable_success_is_doubt": (_after({Kind.UNREADABLE: Step.CONFIRM}),),
    "echo_is_compared": (_after({Kind.OTHER_RECORD: Step.CONFIRM}),),
    "replayed_error_is_stuck": (_after({Kind.STUCK: Step.AGAIN}),),
    "conflict_is_not_success": (_after({Kind.EXISTS: Step.CONFIRM}),),
    "conflict_is_not_failure": (_after({Kind.EXISTS: Step.REJECT}),),
    "refusal_needs_no_doubt": ((attempts, "after_attempt", _given(doubt=False)),),
    "credentials_halt": (_after({Kind.CREDENTIALS: Step.REJECT}),),
    "wrong_address_halts": (_after({Kind.MISSING: Step.REJECT, Kind.REDIRECTED: Step.REJECT}),),
    "throttling_keeps_row": (_after({Kind.THROTTLED: Step.REJECT}),),
    # Before a request leaves
    "intent_before_send": ((attempts, "send_block", _given(durable=True)),),
    "one_request_per_row": ((attempts, "send_block", _given(under_way=0)),),
    "same_bytes": ((attempts, "send_block", _ANY_BYTES), (rows_in_doubt, "at_start", _ANY_BYTES)),
    "fresh_intent": ((attempts, "send_block", _given(age_of_intent=0.0)),),
    # What is known of a row
    "doubt_outlives_crash": ((row_state, "intend", _given(absent=True)),),
    "merge_adds_knowledge": ((row_state, "merge", lambda _: lambda _known, other: other),),
    "corrections_wait_for_verdict": ((row_state, "correct", _loose_change(RowState.NEW)),),
    "cancel_only_unsent": ((row_state, "cancel", _loose_change(RowState.CANCELLED)),),
    "retry_only_after_final_failure": ((row_state, "retry", _given(finally_failed=True)),),
    # Time
    "key_expires": ((clocks, "key_is_trusted", always(True)),),
    "clock_back_expires_key": ((clocks, "went_back", always(False)),),
    "oldest_clock_counts": ((clocks, "age", _by_wall_clock),),
    "epoch_waits_for_abandoned": ((rows_in_doubt, "after_scan", _given(since_send=math.inf)),),
    "waits_on_steady_clocks": (
        (clocks, "at_least", lambda _: lambda then, now, _seen: clocks.passed(then, now)[0]),
    ),
    # Evidence of the list
    "absence_needs_whole_scan": ((rows_in_doubt, "after_scan", _evolved(whole=True)),),
    "absence_needs_settled_list": (
        (
            rows_in_doubt,
            "after_scan",
            lambda real: (
                lambda scan, **facts: real(attrs.evolve(scan, began=scan.began + LIST_SETTLES), **facts)
            ),
        ),
    ),
    "scan_starts_by_service_clock": ((clocks, "scan_start", lambda _: lambda first: first.wall - DAY),),
    "second_scan_is_unbounded": ((rows_in_doubt, "after_scan", _evolved(everywhere=True)),),
    "proof_decides": ((matching, "match_of", _evolved(proof=None)),),
    "body_is_compared": ((matching, "match_of", _any_content),),
    # The run as a whole
    "same_place": ((stop_rules, "account_mismatch", _here),),
    "rotated_key_is_proven": ((stop_rules, "account_mismatch", _given(visible=True)),),
    "open_rows_are_not_complete": (
        (outcomes, "is_complete", lambda _: lambda totals: not count_rows(totals, Outcome.NOT_STARTED)),
    ),
}
"""{rule: what the code is without it}."""


def without(rule: str) -> contextlib.AbstractContextManager[None]:
    """Play without one rule, everywhere, while this lasts."""
    return replaced(ABLATIONS[rule])


@contextlib.contextmanager
def replaced(ablations: Iterable[Ablation]) -> Iterator[None]:
    """Play with these functions instead of the real ones, everywhere, while this lasts."""
    swaps = [(owner, name, getattr(owner, name), make) for owner, name, make in ablations]
    loose = [(owner, name, real, make(real)) for owner, name, real, make in swaps]
    for owner, name, real, careless in loose:
        _replace(owner, name, real, careless)
    try:
        yield
    finally:
        for owner, name, real, careless in loose:
            _replace(owner, name, careless, real)


def _replace(owner: Any, name: str, old: Any, new: Any) -> None:
    worker.named.cache_clear()
    if isinstance(owner, type):
        setattr(owner, name, new)
        return
    modules = [module for path, module in list(sys.modules.items()) if path.startswith(_PACKAGES)]
    for module in modules:
        for each in [each for each, value in vars(module).items() if value is old]:
            setattr(module, each, new)
