"""What the page of a batch shows in each state; its charts, in figures and in words; its weight."""

from __future__ import annotations

import re
import textwrap
from itertools import pairwise

import attrs
import pytest

from payments_async.bulk import (
    Activity,
    AnswerTimes,
    Outcome,
    RowAttempts,
    RunSeries,
    RunTime,
    SeriesBucket,
    StatusChange,
)
from payments_async.bulk._page import charts, view
from payments_async.bulk._page.site import FILES
from payments_async.bulk._page.source import PageFigures
from payments_async.bulk._protocol.run_figures import time_class
from payments_async.bulk._texts.ledger_address import LedgerAddress
from tests.support.batch_pages import (
    BEGAN,
    cause,
    causes,
    changed,
    report,
    row,
    series,
    snapshot,
    states,
    words_of,
)
from tests.support.snapshots import Snapshots

HEAVIEST = 60_000


def html_of(now: PageFigures) -> str:
    """The page's HTML."""
    return FILES.render("batch.html", view.batch_context(now))


def lines_of(html: str) -> list[str]:
    """Its words, wrapped."""
    return textwrap.wrap(words_of(html).replace("\N{NO-BREAK SPACE}", " "), 110, break_on_hyphens=False)


@pytest.mark.parametrize("name", states())
def test_each_state_says_what_it_is(name: str, assert_snapshot: Snapshots) -> None:
    now = states()[name]
    html = html_of(now)
    assert_snapshot(lines_of(html))
    assert ("http-equiv" in html) is (now.phase != "ended")  # without JavaScript it loads itself anew
    assert not re.search(r"\sstyle=|\son\w+=", html)


@pytest.mark.parametrize(("name", "tone"), [("rejected", "wait"), ("failed", "bad"), ("returned", "bad")])
def test_a_refusal_is_amber_and_a_failure_red(name: str, tone: str) -> None:
    assert f'<span class="pill {tone}">complete' in html_of(states()[name])


def test_every_page_with_its_assets_is_light() -> None:
    assets = sum(map(len, FILES.assets.values()))
    now = states()["failed"]
    many = [row(number, failure_message="Why it was so. " * 20) for number in range(1, 51)]
    reasons = tuple(cause(Outcome.FAILED, 90, *many[n : n + 3], reason="So. " * 99) for n in range(0, 48, 2))
    buckets = tuple(SeriesBucket(BEGAN + n, 1, 500 + n % 300, 1, 0, 0, 1000.0, 0.5) for n in range(3600))
    full = attrs.evolve(changed(now, series=RunSeries(buckets, series().times)), causes=reasons)
    page = FILES.render("row.html", view.row_context(now, row(41)))
    for html in (html_of(full), page):
        assert len(html.encode()) + assets <= HEAVIEST, (len(html), assets)
    assert "360 rows with 4 more causes" in words_of(html_of(full))


def test_a_short_run_has_no_speed_as_it_is_counted_in_whole_seconds() -> None:
    now = states()["complete"]
    short = RunSeries((SeriesBucket(BEGAN, 1, 7),), series().times)
    assert "the last run" in words_of(html_of(now))
    assert "the last run" not in words_of(html_of(changed(now, series=short)))


def test_a_batch_without_a_name_is_called_after_its_file_and_one_in_a_database_has_its_commands() -> None:
    now = states()["stopped"]
    hashed = report({"not_final": 700, "not_started": 500}, batch_id="ab" * 32)
    nameless = attrs.evolve(changed(now, report=hashed), name="may.csv.ledger")
    assert view.title_of(nameless) == "may.csv"
    database = LedgerAddress("postgresql://me:secret@host/db", "june-2026")
    words = words_of(html_of(attrs.evolve(now, ledger=database)))
    assert "payments payouts watch 'postgresql://me:***@host/db' --batch-id june-2026" in words
    assert "secret" not in words
    untouched = attrs.evolve(states()["starting"], phase="ended")
    assert "nothing was sent yet" in words_of(html_of(untouched))


def test_a_batch_that_waits_for_its_confirmation_is_not_said_to_be_paid() -> None:
    asked = attrs.evolve(states()["starting"], phase="reading")
    assert "june-2026 not paying yet" in words_of(html_of(asked))


ONCE = row(
    7,
    outcome=Outcome.ARRIVED,
    payout_status="completed",
    failure_code=None,
    failure_message=None,
    attempts=RowAttempts(),
    row_key="***",
)
STATUSES = (
    StatusChange("completed", "po_7", BEGAN + 9.0, BEGAN + 3.0),
    StatusChange("completed", "po_7", BEGAN + 60.0, None, contradicts=True),
)
ROWS = {
    "failed": row(41),
    "elsewhere": row(41, base_url="https://pay.example/v1"),
    "without a key": row(41, row_key="***"),  # a key may be 41
    "without a name": row(41, row_key="***", reference="***"),
    "once": ONCE,
    "unsent": attrs.evolve(
        ONCE, outcome=Outcome.NOT_STARTED, payout_status=None, first_sent=None, last_sent=None, payout_id=None
    ),
    "listed": attrs.evolve(ONCE, first_sent=None, last_sent=None, payout_money="GHS 9.99"),
    "claimed": attrs.evolve(ONCE, outcome=Outcome.UNDER_WAY, payout_status=None, payout_id=None),
    "turned": attrs.evolve(ONCE, statuses=STATUSES),
    "one status": attrs.evolve(ONCE, statuses=STATUSES[:1]),
    "replayed": attrs.evolve(
        ONCE, attempts=RowAttempts(1, (attrs.evolve(row(1).attempts.first[0], replayed=True),))
    ),
}


def test_a_batch_whose_rows_are_all_cancelled_has_created_nothing() -> None:
    words = words_of(html_of(snapshot(phase="ended", report=report({"cancelled": 8}))))
    assert "GHS 0.00 created of GHS 4,009.60 asked" in words


@pytest.mark.parametrize("name", ROWS)
def test_a_row_has_its_facts_and_its_attempts(name: str, assert_snapshot: Snapshots) -> None:
    html = FILES.render("row.html", view.row_context(states()["running"], ROWS[name]))
    assert_snapshot(lines_of(html))
    assert ("http://127.0.0.1:20999/_sandbox/payouts" in html) is (
        name not in ("elsewhere", "unsent", "claimed")
    )


def test_what_a_service_or_an_operator_wrote_is_text() -> None:
    evil = row(3, failure_message="<script>alert(1)</script>", row_key="<b>", reference="<i>" * 9)
    now = states()["running"]
    page = html_of(attrs.evolve(now, causes=(cause(evil.outcome, 1, evil),)))
    page += FILES.render("row.html", view.row_context(now, evil))
    assert "<script>" not in page
    assert "<i>" not in page
    assert "&lt;script&gt;" in page
    assert "&lt;b&gt;" in page


def test_a_bar_shows_small_parts_and_its_parts_fill_it() -> None:
    parts = charts.stacked([("ok", "arrived", 99_999), ("bad", "failed", 1), ("idle", "not started", 0)])
    assert [part.width for part in parts][1:] == [0.79, 0.0]
    assert round(sum(part.width for part in parts)) == 100
    assert charts.stacked([("ok", "arrived", 0)])[0].width == 0


def drawn(whole: RunSeries, *runs: RunTime, left: float | None = None) -> charts.SpeedChart:
    """The chart of these runs."""
    chart = charts.speed_chart(whole.by_run(runs), left)
    assert chart is not None
    return chart


def test_the_speed_chart_has_a_run_its_limit_and_the_time_that_is_left(assert_snapshot: Snapshots) -> None:
    assert charts.speed_chart([], None) is None
    chart = drawn(series(), left=22.0)
    assert (chart.begin, chart.end) == ("21:19:26", "≈ 21:20:10")
    assert_snapshot(chart.sentence)
    assert [x for x, _ in chart.bands] == [20.45, 22.73]
    far = drawn(RunSeries((SeriesBucket(BEGAN, 1, 3, limit=1000.0),)))  # a limit far above is only named
    assert (far.limit, far.limit_at, far.end) == (1000.0, None, "21:19:27")
    unlimited = drawn(RunSeries((SeriesBucket(BEGAN, 1, 3),)))
    assert (unlimited.limit, unlimited.note, "limit" in unlimited.sentence) == (None, "", False)


def test_all_runs_are_on_one_axis_and_the_time_between_them_is_narrow() -> None:
    first = tuple(SeriesBucket(BEGAN - 90_000 + n, 1, 50) for n in range(20))
    whole = attrs.evolve(series(), buckets=(*first, *series().buckets))
    known = (RunTime(BEGAN - 90_000.5, BEGAN - 89_980.2, is_cut_off=True), RunTime(BEGAN - 2.5, BEGAN + 22.0))
    chart = drawn(whole, *known)
    (gap,) = chart.gaps
    assert gap.words == (
        "Not running 2026-06-29 20:19:45 to 2026-06-30 21:19:23; "
        "the run before was killed or cut off, with rows under way"
    )
    assert (gap.x, gap.width, gap.is_cut_off) == (44.76, 6.0, True)
    assert chart.line.count("M") == chart.area.count("Z") == 2
    assert "141.2 payouts a second while a run was at work" in chart.sentence
    assert "Not running" in chart.sentence
    (unknown,) = drawn(whole).gaps  # without the ledger's word it only says what it has seen
    assert (unknown.words, unknown.is_cut_off) == (
        "No answer 2026-06-29 20:19:46 to 2026-06-30 21:19:26",
        False,
    )
    (end,) = drawn(series(), attrs.evolve(known[1], is_cut_off=True)).gaps
    assert (end.x, end.width) == (100.0, 0.0)
    assert end.words == "At 21:19:48 the last run was killed or cut off, with rows under way"


def test_many_runs_share_the_room_for_the_times_between_them() -> None:
    buckets = tuple(SeriesBucket(BEGAN + 1000 * n, 1, 10) for n in range(40))
    chart = drawn(RunSeries(buckets))
    assert len(chart.gaps) == 39
    assert sum(gap.width for gap in chart.gaps) == pytest.approx(36, abs=0.5)
    html = html_of(attrs.evolve(changed(states()["complete"], series=RunSeries(buckets)), runs=()))
    assert html.count("<li>No answer") == 3, "the last of them are named"


def test_the_answer_times_are_a_histogram_of_few_bars_with_a_table() -> None:
    assert charts.time_chart(AnswerTimes()) is None
    silent = charts.time_chart(AnswerTimes(no_answer=3))
    assert silent is not None
    assert (silent.bars, silent.ticks, silent.percentiles) == ([], [], [])
    assert silent.missing_height == charts.HEIGHT
    counts = [0] * len(AnswerTimes().counts)
    counts[0], counts[40], counts[-1] = 5, 3, 2
    chart = charts.time_chart(AnswerTimes(tuple(counts), 1))
    assert chart is not None
    assert len(chart.bars) <= 14
    assert sum(count for _, count in chart.rows) == 10
    assert chart.rows[0][0].startswith("up to ")
    assert chart.rows[-1][0].startswith("over ")
    assert chart.sentence.endswith("1 request had no answer.")


@pytest.mark.parametrize(
    ("fastest", "slowest", "texts"),
    [
        (0.0004, 140.0, "0 10 ms 100 ms 1 s 10 s"),
        (0.045, 1.4, "50 ms 100 ms 200 ms 500 ms"),
        (0.06, 0.06, "50 ms 100 ms"),
        (0.0004, 0.0004, "0 2 ms"),
        (140.0, 140.0, "50 s 100 s"),
    ],
)
def test_the_axis_of_answer_times_has_round_times_at_their_place(
    fastest: float, slowest: float, texts: str
) -> None:
    counts = [0] * len(AnswerTimes().counts)
    counts[time_class(fastest)], counts[time_class(slowest)] = 3, 4
    chart = charts.time_chart(AnswerTimes(tuple(counts)))
    assert chart is not None
    assert " ".join(text for _, text, _ in chart.ticks) == texts
    assert len(chart.bars) >= 8, "one class alone is no wall"
    places = [x for x, _, _ in chart.ticks]
    assert all(later - earlier >= 14 for earlier, later in pairwise(places))
    for bar in chart.bars:  # a bar that begins at a round time has its mark there
        assert all(text != bar.words.split(" to ")[0] or x == bar.x for x, text, _ in chart.ticks)


@pytest.mark.parametrize(
    ("answer", "tone"),
    [("201", "ok"), ("422", "wait"), ("429", "wait"), ("503", "bad"), ("302", "idle"), ("timeout", "wait")],
)
def test_an_attempt_has_the_colour_of_its_answer(answer: str, tone: str) -> None:
    assert charts.attempt_tone(answer) == tone


def test_a_snapshot_differs_by_its_figures_and_not_by_its_time() -> None:
    assert snapshot(rows_read=1, at=1.0) == snapshot(rows_read=1, at=2.0)
    assert snapshot(rows_read=1) != snapshot(rows_read=2)
    one, other = report({"arrived": 1}), report({"arrived": 2})
    assert snapshot(one, at=1.0) == snapshot(one, at=2.0) != snapshot(other, at=2.0)


def test_what_needs_a_person_comes_by_urgency_with_its_meaning(assert_snapshot: Snapshots) -> None:
    assert_snapshot(re.findall(r"<h3>(.*?)</h3>", html_of(attrs.evolve(states()["excess"], causes=causes()))))


def test_a_page_leads_with_what_arrived_once_payouts_are_followed() -> None:
    arrives = {"arrived": 3, "not_final": 1}
    for rows, doing, word in (
        (arrives, "paying", "arrived"),
        ({"not_final": 4}, "following", "arrived"),
        ({"not_final": 4}, "reconciling", "created"),
        ({**arrives, "not_started": 1}, "paying", "created"),
    ):
        now = snapshot(report=report(rows, activity=Activity(doing=doing)))
        assert f"{word} of GHS" in words_of(html_of(now)), (rows, doing)
