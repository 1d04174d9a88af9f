"""The figures of a run in memory: second by second, closed limits, and what a failed commit gives back."""

from __future__ import annotations

import pytest

from payments_async.bulk._ledger.run_figures import RunRecorder
from payments_async.bulk._protocol.attempts import NO_ATTEMPTS, AttemptReply, RowAttempt, one_attempt
from payments_async.bulk._protocol.run_figures import RunFigures, SeriesBucket, ending_of
from payments_async.bulk.ledger_errors import LedgerUnavailable

_503 = RowAttempt(100.2, "503", 0.1)
_201 = RowAttempt(101.2, "201", 0.2)


def test_answers_are_counted_in_the_second_in_which_they_came() -> None:
    recorder = RunRecorder()
    assert recorder.add(100.1, "created", 0.05)
    assert not recorder.add(100.9, "refused", 0.01)
    recorder.limit(100.9, 16.0, 0.0)
    assert recorder.add(102.0, "failed", 0.3)
    assert not recorder.add(102.5, "no_answer", 30.0)
    series = recorder.pending().series
    assert series.buckets == (
        SeriesBucket(100, created=1, refused=1, limit=16.0),
        SeriesBucket(102, failed=1, no_answer=1, limit=16.0),
    )
    assert (series.times.answers, series.times.no_answer) == (3, 1)
    assert not recorder.add(102.9, "created", 0.1)
    assert recorder.pending().series.buckets[-1].requests == 3


def test_a_closed_limit_shows_in_each_of_its_seconds_once() -> None:
    recorder = RunRecorder()
    recorder.limit(100.5, 16.0, 2.0)
    recorder.limit(101.0, 16.0, 1.0)  # within the first
    recorder.limit(102.0, 16.0, 1.25)  # half a second longer, and then more
    closed = {bucket.at: bucket.closed for bucket in recorder.pending(200.0).series.buckets}
    assert closed == {100: 0.5, 101: 1.0, 102: 1.0, 103: 0.25}


def test_of_a_closed_limit_only_what_has_passed_is_noted() -> None:
    recorder = RunRecorder()
    recorder.add(100.5, "refused", 0.1)
    recorder.limit(100.5, 16.0, 3600.0)
    assert recorder.pending(100.5).series.end == 101
    recorder.add(101.5, "created", 0.1)  # sent before the answer 429
    assert [bucket.closed for bucket in recorder.pending().series.buckets] == [0.5, 0.5]
    taken = recorder.take(102.25)  # the run is stopped
    assert taken is not None
    assert [bucket.closed for bucket in taken.series.buckets] == [0.5, 1.0, 0.25]


def test_figures_are_taken_about_once_a_second_until_storing_them_fails() -> None:
    recorder = RunRecorder()
    assert recorder.due(100.0) is None
    recorder.add(101.0, "failed", 0.1)
    recorder.attempt(7, _503)
    taken = recorder.due(101.0)
    assert taken is not None
    assert recorder.take() is None
    assert recorder.due(101.5) is None, "the last ones were taken half a second before"
    recorder.add(101.6, "created", 0.2)
    recorder.attempt(7, _201)
    with recorder.storing(taken):
        raise TypeError
    assert (recorder.due(102.0), recorder.take()) == (None, None)
    again = recorder.pending()
    assert again.series.buckets == (SeriesBucket(101, created=1, failed=1),)
    assert str(again.attempts[7]) == "503 201"
    assert RunFigures().is_empty
    assert not again.is_empty


def test_attempts_not_stored_yet_follow_the_stored_ones() -> None:
    recorder = RunRecorder()
    recorder.attempt(7, _201)
    recorder.attempt(8, _503)
    found = recorder.added_to({7: one_attempt(_503), 9: NO_ATTEMPTS}, [7, 9])
    assert {number: str(each) for number, each in found.items()} == {7: "503 201", 9: ""}


def test_a_reply_ends_a_request_in_one_of_four_ways() -> None:
    assert ending_of(AttemptReply(200, "executed", record="matching", payout_id="po_1")) == "created"
    assert ending_of(AttemptReply(200, "executed", record="other")) == "failed"
    assert ending_of(AttemptReply(429, "not_executed")) == "refused"
    assert ending_of(AttemptReply(503)) == "failed"
    assert ending_of(AttemptReply(None)) == "no_answer"


def test_a_ledger_that_is_away_is_no_matter_of_its_figures() -> None:
    away = LedgerUnavailable("june", "cannot be reached")
    with pytest.raises(LedgerUnavailable), RunRecorder().reading():
        raise away
