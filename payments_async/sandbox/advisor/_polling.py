"""Advice on reading: frequency, duration and operation (`docs/interface.md`, Polling)."""

from __future__ import annotations

from collections.abc import Iterator

from ._evidence import AdvisorEvidence, Finding, ObservedRequest, grouped, ids, runs

_PACE = 4.9
"""Seconds between two readings: the guidance's five, less what clocks and lines may differ."""

_MINUTE = 60.0
_READS = 3
"""Readings of one record at that pace: two happen when a payer comes back while a webhook arrives."""

_LIST_READS = 5
"""Readings of one list that showed the same: one page serves many look-ups."""

_LIVE_READS = 3


def too_fast(evidence: AdvisorEvidence) -> Iterator[Finding]:
    """A transaction that is not final, read more often than every five seconds."""
    for run in _readings(evidence, _PACE):
        if not _ended(evidence, run[0]):
            yield Finding(
                "polling_too_fast",
                "limits",
                f"{run[0].log.operation} read {len(run)} times, each less than 5 s after the last",
                "Nothing changes that fast; the readings use up the limit that payments need.",
                "Limits, Polling",
                "Read at most every five seconds, with jitter, slower while nothing changes; webhooks are "
                "the primary signal. The SDK's wait(...) does this.",
                ids(run),
                run[0].record or run[0].log.path,
            )


def after_the_end(evidence: AdvisorEvidence) -> Iterator[Finding]:
    """A record that is still being read although an answer has shown that it is final."""
    for run in _readings(evidence, _MINUTE):
        later = [sent for sent in run if _ended(evidence, sent)]
        # the first of them learns that it is final; a page that is shown again reads it once more
        if len(later) > _READS and not run[0].is_list:  # a list is read on for its next records
            yield Finding(
                "polling_after_final",
                "limits",
                f"{run[0].log.operation} read {len(later) - 1} times after an answer had shown the end",
                "A final status never changes, so these readings are wasted. The first that showed the end "
                "is not counted.",
                "Limits, Polling",
                "Stop at a final status: completed_at, failed_at or expired_at is set.",
                ids(later),
                run[0].record or run[0].log.path,
            )


def live_as_normal(evidence: AdvisorEvidence) -> Iterator[Finding]:
    """Live operations on a record without a normal read beside them."""
    live = (sent for sent in evidence.requests if sent.is_live)
    for (key, record), used in grouped(live, lambda sent: (sent.log.key, sent.record or "")).items():
        since, until = used[0].log.at - _MINUTE, used[-1].log.at
        normal = any(
            sent.log.key == key and since <= sent.log.at <= until and _reads(sent, record)
            for sent in evidence.requests
        )
        if len(used) >= _LIVE_READS and not normal:
            yield Finding(
                "live_reads",
                "limits",
                f"{used[0].log.operation} used {len(used)} times in place of a normal read",
                "Live operations ask the gateway each time: 12 a minute for a record, and slow.",
                "Limits, Polling",
                "Read the payment or payout from stored state first; requery, inspect and sync are for "
                "recovery.",
                ids(used),
                record,
            )


def _readings(evidence: AdvisorEvidence, within: float) -> Iterator[list[ObservedRequest]]:
    """Runs of readings of one record, or of one list that showed the same each time."""
    reads = (sent for sent in evidence.requests if _is_read(sent))
    for same in grouped(reads, _read_of).values():
        least = _LIST_READS if same[0].is_list else _READS
        yield from (run for run in runs(same, within) if len(run) >= least)


def _is_read(sent: ObservedRequest) -> bool:
    log = sent.log
    about_one = log.operation in ("checkouts.retrieve", "payment_intents.retrieve_attempt")
    return (about_one or sent.is_list) and log.status == 200 and log.fault is None


def _read_of(sent: ObservedRequest) -> tuple[str | None, str, bytes]:
    return sent.log.key, sent.log.path, sent.answer if sent.is_list else b""


def _ended(evidence: AdvisorEvidence, sent: ObservedRequest) -> bool:
    """True if all records of a reading were final at that time; True for an empty list."""
    about = _followed(sent)
    finals = [evidence.finals.get(record) for record in about]
    return all(final is not None and final <= sent.log.at for final in finals)


def _followed(sent: ObservedRequest) -> list[str]:
    """The payouts, payments and attempts that a reading is about."""
    if sent.is_list:
        return [record for record in sent.shown if record.startswith(("po_", "pi_"))]
    if sent.log.operation == "checkouts.retrieve":
        return [record for record in sent.shown if record.startswith("pi_")]
    return [sent.record] if sent.record else []


def _reads(sent: ObservedRequest, record: str) -> bool:
    if sent.is_live or sent.log.method != "GET":
        return False
    return sent.record == record or record in sent.path_ids or record in sent.shown
