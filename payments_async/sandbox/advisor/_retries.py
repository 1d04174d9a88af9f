"""Advice on retries: keys, Retry-After, loops side by side (`docs/interface.md`, Errors and Idempotency)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from email.utils import parsedate_to_datetime
from itertools import pairwise

from .._records.idempotency import LIFETIME
from .._same_payout import UNNAMED, is_unnamed, payment_of
from ._evidence import AdvisorEvidence, Finding, ObservedRequest, ids, repeated, seconds_between, stretches

_EARLY = 0.05
"""Seconds a retry may be early: clocks and lines are not exact."""

_AGAIN = 30
"""Seconds: the same once more within them is a retry; later it may be another customer's."""

_TOGETHER = 0.03
"""Seconds: two tries of one transaction this close did not wait for each other."""

_PAIRS = 3
"""That many pairs so close: back-off with full jitter makes one now and then, never three."""


_NOTHING_HELPS = "Each repeat can move money again: the service cannot know that it is the same request."
_PAID_AGAIN = "an answer that was lost is paid a second time."
_ANOTHER_PAGE = "each repeat makes another page to pay on: a payer who is given both can pay twice."
_REFERENCE_HELPED = (
    "Only the payout's reference kept a repeat from moving money again, and its 409 does not say what became "
    "of the first try."
)


def repeated_without_key(evidence: AdvisorEvidence) -> Iterator[Finding]:
    """The same creating POST more than once, without an idempotency key."""
    bare = (
        sent for sent in evidence.requests if sent.creates and sent.log.idempotency_key is None and sent.body
    )
    for same in repeated(bare, lambda sent: (sent.log.key, sent.log.path, sent.body)).values():
        # a payout whose reference was taken was refused by luck: the first try may have been the lost one
        open_ones = [sent for sent in same if not sent.was_refused or sent.was_duplicate]
        for tries in stretches(open_ones, _is_retry):
            yield Finding(
                "post_without_key",
                "money",
                f"{_name(tries[0])} sent {len(tries)} times{_in_runs(tries)} without an idempotency key",
                _effect_of_repeats(tries),
                "Limits, Idempotency",
                "Make one X-Idempotency-Key for the thing paid for, store it, and send it with every try. "
                "The SDK does this by itself.",
                ids(tries),
                tries[0].reference or tries[0].log.path,
            )


def _effect_of_repeats(tries: Sequence[ObservedRequest]) -> str:
    """What repeats without a key do."""
    if tries[0].log.operation == "checkouts.create":
        return _ANOTHER_PAGE.capitalize()
    return _REFERENCE_HELPED if any(sent.was_duplicate for sent in tries) else _NOTHING_HELPS


def _in_runs(tries: Sequence[ObservedRequest]) -> str:
    """The number of runs, where a program was started again; empty for one run."""
    count = 1 + sum(seconds_between(earlier, later) >= _AGAIN for earlier, later in pairwise(tries))
    return f" in {count} runs" if 1 < count < len(tries) else ""


def _is_retry(earlier: ObservedRequest, later: ObservedRequest) -> bool:
    """True if the same body is a retry: it has a reference, or the first was in doubt, or it came soon."""
    return later.reference is not None or earlier.in_doubt or seconds_between(earlier, later) < _AGAIN


def one_body_under_two_keys(evidence: AdvisorEvidence) -> Iterator[Finding]:
    """One body under several idempotency keys: a retry that the service takes for a second request."""
    taken = {sent for _, others in _reused(evidence) for sent in others}
    # what was definitely refused moved nothing; a taken reference does not say what became of the first try
    open_ones = (
        sent
        for sent in _keyed(evidence)
        if not sent.moved_nothing or (sent.was_duplicate and sent not in taken)
    )
    for same in repeated(open_ones, lambda sent: (sent.log.key, sent.log.path, sent.body)).values():
        keys = {sent.log.idempotency_key for sent in same}
        # two customers may buy the same; one named thing, or a try in doubt, is a retry with a new key
        if len(keys) > 1 and (
            any(sent.reference for sent in same) or any(sent.in_doubt for sent in same[:-1])
        ):
            yield Finding(
                "two_keys",
                "money",
                f"{_name(same[0])}: the same body under {len(keys)} idempotency keys",
                "A new key makes a retry a new request: "
                + (_ANOTHER_PAGE if same[0].log.operation == "checkouts.create" else _PAID_AGAIN),
                "Limits, Idempotency",
                "Make the key once, before the first try, from the thing paid for; send it with every try.",
                ids(same),
                same[0].reference or same[0].log.path,
            )


def paid_again(evidence: AdvisorEvidence) -> Iterator[Finding]:
    """Equal payouts without references to tell them apart, whatever their idempotency keys."""
    payouts = [sent for sent in evidence.requests if sent.made and sent.log.operation == "payouts.create"]
    if all(sent.reference is not None for sent in payouts):
        return
    told = [
        finding.requests
        for rule in (repeated_without_key, one_body_under_two_keys)
        for finding in rule(evidence)
    ]
    for alike in repeated(payouts, lambda sent: (sent.log.key, payment_of(sent.fields))).values():
        same = _unnamed(evidence, alike)
        if same and not any(set(ids(same)) <= set(requests) for requests in told):
            yield Finding(
                "paid_again",
                "money",
                f"{_name(same[0])}: {len(same)} equal payouts made without a reference",
                f"They are one payout twice: {UNNAMED}. An idempotency key does so for a day alone.",
                "Endpoints, POST /payouts",
                "Give each payout a reference of its own, from what is paid for: it is unique for ever.",
                ids(same),
                same[0].reference or same[0].log.path,
            )


def _unnamed(evidence: AdvisorEvidence, alike: Sequence[ObservedRequest]) -> list[ObservedRequest]:
    """The equal payouts that no references tell apart; one that failed moved no money before the next."""
    same: set[int] = set()
    before: dict[tuple[bool, bool], list[int]] = {}
    """{(has a reference, was answered): places of the payouts like that which moved money}."""
    for index, later in enumerate(alike):
        for (is_named, answered), firsts in before.items():
            if firsts and is_unnamed("named" if is_named else None, later.reference, answered=answered):
                same |= {index, *firsts}
                del firsts[1:]  # they are found, and one of them is enough for the next
        if not later.shown & evidence.failed:
            before.setdefault((later.reference is not None, not later.in_doubt), []).append(index)
    return [alike[index] for index in sorted(same)]


def one_key_for_two_bodies(evidence: AdvisorEvidence) -> Iterator[Finding]:
    """One idempotency key with several bodies: the later ones are no requests of their own."""
    for first, others in _reused(evidence):
        reused = [sent for sent in others if sent.reuses_a_key or not first.moved_nothing]
        if reused:
            yield Finding(
                "one_key",
                "money",
                f"{_name(first)}: {1 + len({sent.body for sent in reused})} bodies under one idempotency key",
                "A key stands for one request: another body under it is refused (409) or gets the first "
                "answer, so what it asks for is not done.",
                "Limits, Idempotency",
                "Send the same bytes with every try, and make a new key for each new thing.",
                ids((first, *reused)),
                first.reference or str(first.log.idempotency_key),
            )


def _keyed(evidence: AdvisorEvidence) -> Iterator[ObservedRequest]:
    return (sent for sent in evidence.requests if sent.creates and sent.log.idempotency_key and sent.body)


def _reused(evidence: AdvisorEvidence) -> Iterator[tuple[ObservedRequest, list[ObservedRequest]]]:
    """The first request of each idempotency key, with those after it that ask for something else."""
    for alike in repeated(_keyed(evidence), lambda sent: sent.name).values():
        for first, *later in _within_lifetime(alike):
            if others := [
                sent for sent in later if (sent.log.path, sent.body) != (first.log.path, first.body)
            ]:
                yield first, others


def _within_lifetime(alike: Sequence[ObservedRequest]) -> Iterator[list[ObservedRequest]]:
    """The requests under one key, in groups: a key that has expired stands for a new request."""
    together: list[ObservedRequest] = []
    for sent in alike:
        if together and sent.log.at - together[0].log.at >= LIFETIME:
            yield together
            together = []
        together.append(sent)
    yield together


def before_retry_after(evidence: AdvisorEvidence) -> Iterator[Finding]:
    """A request that came again before the time its 429 asked for."""
    if not any(sent.retry_after for sent in evidence.requests):
        return
    for same in repeated(evidence.requests, _identity).values():
        for refused, retry in pairwise(same):
            wait = _asked_wait(refused)
            if wait is not None and seconds_between(refused, retry) < wait - _EARLY:
                yield Finding(
                    "early_retry",
                    "limits",
                    f"{_name(retry)} came again {seconds_between(refused, retry):.1f} s after a 429 "
                    f"that asked for {wait:g} s",
                    "It is refused again, uses the retries up, and keeps the limit closed for others.",
                    "Errors, rule 1",
                    "Wait the seconds in Retry-After before the next try; without it, back off with jitter.",
                    ids((refused, retry)),
                    retry.reference or retry.log.path,
                )
                break


def parallel_loops(evidence: AdvisorEvidence) -> Iterator[Finding]:
    """Several tries of one transaction at the same moments."""
    creating = (sent for sent in evidence.requests if sent.creates)
    for name, same in repeated(creating, _transaction).items():
        pairs = [(one, two) for one, two in pairwise(same) if seconds_between(one, two) <= _TOGETHER]
        if len(pairs) >= _PAIRS:
            shown = dict.fromkeys(request for pair in pairs for request in pair)
            yield Finding(
                "parallel_loops",
                "money",
                f"{_name(same[0])}: {len(shown)} tries of one transaction side by side, without back-off",
                "Loops side by side race each other past every back-off, and multiply whatever goes wrong.",
                "Errors, rule 1",
                "Give each transaction one owner that retries (a row lock, a queue), with back-off.",
                ids(shown),
                name[1],
            )


def _name(sent: ObservedRequest) -> str:
    return sent.log.operation or f"{sent.log.method} {sent.log.path}"


def _identity(sent: ObservedRequest) -> tuple[str | None, str, str | bytes] | None:
    """The identity that a request shares with its retries."""
    log = sent.log
    if log.operation is None:
        return None
    return log.key, f"{log.method} {log.path}", log.idempotency_key or sent.body


def _transaction(sent: ObservedRequest) -> tuple[str | None, str] | None:
    name = sent.reference or sent.log.idempotency_key
    return None if name is None else (sent.log.key, name)


def _asked_wait(sent: ObservedRequest) -> float | None:
    """The seconds that a 429 asked for, as a number or as a date."""
    text = sent.retry_after
    if text is None:
        return None
    if text.isascii() and text.isdigit():
        return float(text)
    try:
        moment = parsedate_to_datetime(text).timestamp()
    except ValueError:
        return None
    return math.floor(moment - sent.log.at)
