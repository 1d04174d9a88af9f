"""The figures of a run: answers second by second, a histogram of answer times. Pure.

They show how a run went and decide nothing: what is known of a row, and so of money, is in the row. All are
bounded. A series has one bucket for each second in which something happened, and wider ones once there are
too many.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any, ClassVar, Final, Literal, Self, get_args

import attrs

from .attempts import NO_ATTEMPTS, AttemptReply, RowAttempts, is_time

MOST_BUCKETS: Final = 3600
"""Buckets of a series: an hour in seconds, two in buckets of two seconds, and so on."""
SHORTENED: Final = 0.75
"""At most this share of the buckets is left after a ledger has merged neighbours: so it seldom merges."""
_PAUSE: Final = 600
"""Seconds without an answer after which another run began, where that is not known."""
_RECENT: Final = 60.0
_HALF: Final = 10.0
"""Seconds after which a second counts half as much for the pace: so one that falls out changes nothing."""
_LEAST_RECENT: Final = 2.0
_BREAK: Final = 10.0
_LEAST: Final = 0.001
_OCTAVE: Final = 4
BOUNDS: Final[tuple[float, ...]] = tuple(
    _LEAST * 2.0 ** (number / _OCTAVE) for number in range(17 * _OCTAVE + 1)
)
"""Upper bounds of the classes of answer times in seconds, from 1 ms to 131 s: four for each doubling."""


Ending = Literal["created", "refused", "failed", "no_answer"]
"""How a request ended: as the fields of a `SeriesBucket`."""
ENDINGS: Final[tuple[Ending, ...]] = get_args(Ending)
_NO_ANSWER: Final = -1
"""The class, in what a ledger stores, of requests without an answer."""


def ending_of(reply: AttemptReply) -> Ending:
    """Say how a request for a row ended."""
    if reply.verdict == "executed" and reply.record == "matching":
        return "created"
    if reply.status is None:
        return "no_answer"
    return "refused" if reply.status == 429 else "failed"


@attrs.frozen
class SeriesBucket:
    """What came back in one stretch of time."""

    at: int
    """Seconds since 1970 when it begins: a multiple of `seconds`."""
    seconds: int = 1
    """Its width: a power of two."""
    created: int = 0
    """2xx answers that created the payout."""
    refused: int = 0
    """Answers 429."""
    failed: int = 0
    """All other answers."""
    no_answer: int = 0
    """Requests that ended without an answer: a time-out, a lost connection."""
    limit: float | None = None
    """Payouts a second that the limit in force allowed; None if unknown."""
    closed: float = 0.0
    """Seconds of it in which a 429 kept the limit closed."""

    @classmethod
    def read(cls, values: Sequence[Any]) -> Self:
        """Make a bucket of what was stored. Raises TypeError, ValueError."""
        at, seconds, created, refused, failed, no_answer = map(int, values[:6])
        limit, closed = None if values[6] is None else float(values[6]), float(values[7])
        if seconds < 1 or min(created, refused, failed, no_answer) < 0 or not is_time(at + seconds):
            raise ValueError("no bucket")
        if not (0.0 <= (limit or 0.0) < math.inf and 0.0 <= closed < math.inf):
            raise ValueError("no figures")
        return cls(at, seconds, created, refused, failed, no_answer, limit, closed)

    @property
    def requests(self) -> int:
        """All requests that ended in it."""
        return self.created + self.refused + self.failed + self.no_answer

    @property
    def per_second(self) -> float:
        """Payouts created a second."""
        return self.created / self.seconds

    def __add__(self, other: SeriesBucket) -> SeriesBucket:
        """Add up two buckets of the same place: of neighbours that become one, or of two workers.

        The limit is the higher one: workers of one key share it.
        """
        limits = [each for each in (self.limit, other.limit) if each is not None]
        return SeriesBucket(
            self.at,
            self.seconds,
            self.created + other.created,
            self.refused + other.refused,
            self.failed + other.failed,
            self.no_answer + other.no_answer,
            max(limits, default=None),
            min(self.closed + other.closed, float(self.seconds)),
        )

    def widened(self, seconds: int) -> SeriesBucket:
        """The same in a bucket of at least this width."""
        if seconds <= self.seconds:
            return self
        return attrs.evolve(self, at=self.at - self.at % seconds, seconds=seconds)


@attrs.frozen
class AnswerTimes:
    """A histogram of answer times, with logarithmic classes."""

    bounds: ClassVar[tuple[float, ...]] = BOUNDS
    """Upper bounds of the classes, seconds: four for each doubling."""
    counts: tuple[int, ...] = (0,) * (len(BOUNDS) + 1)
    """Answers in each class: up to `bounds[i]` seconds; the last one has all that took longer."""
    no_answer: int = 0
    """Requests that ended without an answer."""

    @classmethod
    def of_classes(cls, answers: Mapping[int, int]) -> Self:
        """Make a histogram of what was stored, as `by_class` gives it. Raises TypeError, ValueError."""
        counts = tuple(int(answers.get(number, 0)) for number in range(len(BOUNDS) + 1))
        no_answer = int(answers.get(_NO_ANSWER, 0))
        if min(*counts, no_answer) < 0:
            raise ValueError("no histogram")
        return cls(counts, no_answer)

    def by_class(self) -> dict[int, int]:
        """{class: answers} for a ledger to store, where there are any; class -1 is without an answer."""
        found = {_NO_ANSWER: self.no_answer, **dict(enumerate(self.counts))}
        return {number: count for number, count in found.items() if count}

    @property
    def answers(self) -> int:
        """How many answers were measured."""
        return sum(self.counts)

    def percentile(self, percent: float) -> float | None:
        """Seconds within which this share of the answers came, to a fifth exact; None without answers."""
        wanted, sums = self.answers * percent / 100.0, tuple(accumulate(self.counts))
        if not wanted:
            return None
        number = next(number for number, reached in enumerate(sums) if reached >= wanted)
        low, high = BOUNDS[number - 1] if number else 0.0, BOUNDS[min(number, len(BOUNDS) - 1)]
        count = self.counts[number]
        return low + (high - low) * (wanted - sums[number] + count) / count

    def __add__(self, other: AnswerTimes) -> AnswerTimes:
        """Add up two histograms."""
        counts = tuple(map(int.__add__, self.counts, other.counts))
        return AnswerTimes(counts, self.no_answer + other.no_answer)


def time_class(seconds: float) -> int:
    """The class of an answer time: an index of `AnswerTimes.counts`."""
    if seconds <= _LEAST:
        return 0
    return min(math.ceil(math.log2(seconds / _LEAST) * _OCTAVE - 1e-9), len(BOUNDS))


@attrs.frozen
class RunTime:
    """When a run was at work. Times are seconds since 1970."""

    begin: float
    end: float
    """Its last entry in the ledger, or now."""
    is_cut_off: bool = False
    """True if it left rows under way: it was killed, or had no time to finish them."""


@attrs.frozen
class RunSeries:
    """The answers of a batch's runs, in the order of time. Seconds in which nothing ended have no bucket."""

    buckets: tuple[SeriesBucket, ...] = ()
    times: AnswerTimes = AnswerTimes()
    _counts: tuple[int, ...] = attrs.field(init=False, eq=False, repr=False)
    """Requests by ending, which an addition need not count again."""

    @_counts.default
    def _counted(self) -> tuple[int, ...]:
        counts = [(each.created, each.refused, each.failed, each.no_answer) for each in self.buckets]
        return tuple(map(sum, zip(*counts, strict=True))) or (0, 0, 0, 0)

    @property
    def seconds(self) -> int:
        """The width of the buckets: of all the same."""
        return self.buckets[0].seconds if self.buckets else 1

    @property
    def begin(self) -> int | None:
        """Seconds since 1970 when the first bucket begins; None without any."""
        return self.buckets[0].at if self.buckets else None

    @property
    def end(self) -> int | None:
        """Seconds since 1970 when the last bucket ends; None without any."""
        return self.buckets[-1].at + self.buckets[-1].seconds if self.buckets else None

    @property
    def total(self) -> SeriesBucket:
        """All buckets in one, for its counts and its closed seconds; `at` and `seconds` span all of them."""
        begin, end, all_of = self.begin or 0, self.end or 1, self.buckets
        limit = max((each.limit for each in all_of if each.limit is not None), default=None)
        created, refused, failed, no_answer = self._counts
        closed = sum(each.closed for each in all_of)
        return SeriesBucket(begin, end - begin, created, refused, failed, no_answer, limit, closed)

    @classmethod
    def of(cls, buckets: Iterable[SeriesBucket], times: AnswerTimes, *, most: int = MOST_BUCKETS) -> Self:
        """Make a series of buckets of any width and order, some perhaps of the same place."""
        found = list(buckets)
        seconds = max((each.seconds for each in found), default=1)
        merged = _merged(found, seconds)
        while len(merged) > most:
            seconds *= 2
            merged = _merged(merged.values(), seconds)
        return cls(tuple(merged[at] for at in sorted(merged)), times)

    def __add__(self, other: RunSeries) -> RunSeries:
        """Add up two series, of two workers or of two runs; its buckets are the wider ones, or wider."""
        times, mine, others = self.times + other.times, self.buckets, other.buckets
        if not others:
            return self._extended(mine, times, other)
        is_later = bool(mine) and other.seconds <= self.seconds and mine[-1].at <= others[0].at
        if is_later and len(mine) + len(others) <= MOST_BUCKETS:  # the usual case: most stay as they are
            later = _merged((mine[-1], *others), self.seconds).values()
            return self._extended((*mine[:-1], *later), times, other)
        return RunSeries.of((*mine, *others), times)

    def _extended(self, buckets: tuple[SeriesBucket, ...], times: AnswerTimes, other: RunSeries) -> RunSeries:
        sums = RunSeries((), times)
        object.__setattr__(sums, "_counts", tuple(map(int.__add__, self._counts, other._counts)))
        object.__setattr__(sums, "buckets", buckets)  # after the counts, which are not made anew
        return sums

    def by_run(self, runs: Sequence[RunTime]) -> list[tuple[RunTime | None, RunSeries]]:
        """Part it into runs, without answer times. Before the first known one long pauses part them: None."""
        begins, parts = [run.begin for run in runs], list[tuple[int, list[SeriesBucket]]]()
        end = -math.inf
        for each in self.buckets:
            number = bisect_left(begins, each.at + each.seconds) - 1
            if not parts or number != parts[-1][0] or (number < 0 and each.at - end > _PAUSE):
                parts.append((number, []))
            parts[-1][1].append(each)
            end = each.at + each.seconds
        return [(runs[number] if number >= 0 else None, RunSeries(tuple(part))) for number, part in parts]

    def recent_rate(self, now: float) -> float:
        """Payouts created a second of late, while no 429 kept the limit closed; 0 while it is unknown.

        A wait for the limit says nothing of the pace of the rest, so the time left does not jump after one.
        """
        recent = self._within(int(now - _RECENT) + 1, math.ceil(now))
        begin = recent[0].at if recent else now
        for before, each in pairwise(recent):  # a run that was stopped and begun again has no pace between
            begin = each.at if each.at - before.at > _BREAK else begin
        created = weighed = is_open = 0.0
        for each in self.between(begin, now, int(_RECENT)):
            seconds = max(min(each.at + each.seconds, now) - each.at - each.closed, 0.0)
            weight = 0.5 ** ((now - each.at) / _HALF)
            created += each.created * weight
            weighed += seconds * weight
            is_open += seconds
        return created / weighed if is_open >= _LEAST_RECENT else 0.0

    def between(self, begin: float, end: float, most: int) -> tuple[SeriesBucket, ...]:
        """Buckets without a gap for a chart, of one width, at most `most` (and one more at an end)."""
        seconds = self.seconds
        while (end - begin) / seconds > most:
            seconds *= 2
        first = int(begin // seconds) * seconds
        last = max(math.ceil(end), first + 1)
        found = _merged(self._within(first, last), seconds)
        return tuple(found.get(at, SeriesBucket(at, seconds)) for at in range(first, last, seconds))

    def _within(self, begin: int, end: int) -> Sequence[SeriesBucket]:
        """The buckets that have a part of this time."""
        first = bisect_right(self.buckets, begin - self.seconds, key=_begin_of)
        return self.buckets[first : bisect_left(self.buckets, end, key=_begin_of)]


def _begin_of(bucket: SeriesBucket) -> int:
    return bucket.at


def _merged(buckets: Iterable[SeriesBucket], seconds: int) -> dict[int, SeriesBucket]:
    found: dict[int, SeriesBucket] = {}
    for each in buckets:
        wide = each.widened(seconds)
        known = found.get(wide.at)
        found[wide.at] = wide if known is None else known + wide
    return found


@attrs.frozen
class SpeedFigures:
    """How a batch is doing at one moment, in a few figures: for a status file, a line or a board."""

    limit: float | None = None
    """Payouts a second that the limit in force allows; None if unknown."""
    per_second: float = 0.0
    """Payouts created a second (`RunSeries.recent_rate`)."""
    closed: bool = False
    """True if a 429 keeps the limit closed now."""
    p50: float | None = None
    """Seconds within which half of all answers came; None without answers."""
    p95: float | None = None
    p99: float | None = None
    refused: int = 0
    """Answers 429, of all runs so far."""
    failed: int = 0
    """Other answers than 2xx and 429."""
    no_answer: int = 0
    minute: tuple[int, ...] = ()
    """Payouts created in each of the last 60 seconds, the present one last; fewer at the beginning."""

    @classmethod
    def of(cls, series: RunSeries, now: float) -> Self:
        """Make the figures of this moment, seconds since 1970."""
        second, (_, refused, failed, no_answer) = int(now), series._counts
        begin = max(second - 59, min(series.begin or second, second))
        return cls(
            limit=next((each.limit for each in reversed(series.buckets) if each.limit is not None), None),
            per_second=round(series.recent_rate(now), 2),
            closed=any(each.closed for each in series._within(second, second + 1)),
            p50=series.times.percentile(50),
            p95=series.times.percentile(95),
            p99=series.times.percentile(99),
            refused=refused,
            failed=failed,
            no_answer=no_answer,
            minute=tuple(each.created // each.seconds for each in series.between(begin, second + 1, 60)),
        )

    def facts(self) -> dict[str, Any]:
        """The same as JSON values."""
        return attrs.asdict(self)

    @classmethod
    def read(cls, facts: object) -> Self | None:
        """Parse what `facts` wrote; None for anything else."""
        fields = attrs.fields_dict(cls)
        if not isinstance(facts, Mapping) or facts.keys() != fields.keys():
            return None
        given = {
            name: value
            for name, value in facts.items()
            if value is not None or fields[name].default is not None
        }
        minute = given.pop("minute")
        if not isinstance(minute, list) or not all(
            isinstance(each, int | float) for each in (*given.values(), *minute)
        ):
            return None
        return cls(**{**facts, "minute": tuple(minute)})


def unreadable_figures(has_series: bool, has_attempts: bool, rows: Sequence[int]) -> tuple[str, ...]:
    """Name the figures of runs that a check could not read. `rows`: numbers of rows whose attempts it is."""
    names = () if has_series else ("payouts a second and answer times",)
    if rows:
        more = f" and {len(rows) - 1:,} more" if len(rows) > 1 else ""
        return (*names, f"the attempts of row {rows[0]}{more}")
    return names if has_attempts else (*names, "the attempts of rows")


@attrs.frozen
class RunFigures:
    """What a ledger stores of a run, or of a part of one."""

    series: RunSeries = RunSeries()
    attempts: Mapping[int, RowAttempts] = attrs.field(factory=dict)
    """{row number: attempts of rows that were not created at once}."""

    @property
    def is_empty(self) -> bool:
        """True if there is nothing to store."""
        return not (self.series.buckets or self.attempts)

    def __add__(self, later: RunFigures) -> RunFigures:
        """Add later figures."""
        attempts = later.attempts_after(self.attempts)
        return RunFigures(self.series + later.series, {**self.attempts, **attempts})

    def attempts_after(self, before: Mapping[int, RowAttempts]) -> dict[int, RowAttempts]:
        """{row number: all its attempts}, of the rows that have some here, with those before."""
        return {number: before.get(number, NO_ATTEMPTS) + added for number, added in self.attempts.items()}
