"""What the page of a batch shows in each state; its charts, in figures and in words; its weight."""

from __future__ import annotations

import re
from itertools import pairwise

import attrs
import pytest

from payments_async.bulk import (
    Activity,
    AnswerTimes,
    Outcome,
    RowAttempts,
    RowView,
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

HEAVIEST = 60_000


def html_of(now: PageFigures) -> str:
    """The page's HTML."""
    return FILES.render("batch.html", view.batch_context(now))


SHOWN = {
    "empty": ("june.csv reading the file", "Reading the file. Every row is checked"),
    "reading": ("7,500 rows of the file are read.",),
    "starting": ("june-2026 paying", "GHS 0.00 created of GHS 6,014,400.00 asked", "Not started 12,000"),
    "running": (
        "GHS 2,797,197.20 created of GHS 6,014,400.00 asked 5,581 of 12,000 rows decided",
        "24 s left at 265 a second",
        "Asked 12,000 6,014,400.00 Not started 6,323 3,169,087.60 Cancelled 0 0.00 Rejected 0 0.00 "
        "Under way 96 48,115.20 In doubt 0 0.00 In conflict 0 0.00 Created 5,581 2,797,197.20 "
        "not final yet 402 201,482.40 arrived 5,120 2,566,144.00 failed 59 29,570.80 returned 0 0.00 "
        "Moved in conflict 0 0.00 In excess 0 0.00",
        "limit 1,000 a second · 1 × 429 · closed for 1.5 s",
        "p50 140 ms · p95 296 ms · p99 479 ms",
        "37 no answer",
        "Rows to look at as of 21:19:47 UTC; the figures above are newer",
        "45 × INSUFFICIENT_FUNDS: The balance does not cover this payout. · GHS 22,554.00",
        "emp-00041 nccuq4qo…aukiqa GHS 1,337.76 503 timeout 201",
        "5 × RECIPIENT_ERROR · GHS 2,506.00",
    ),
    "resumed": (
        "24 s left",
        "Not running 21:06:17 to 21:18:09; the run before was killed or cut off, with rows under way",
        "Not running 21:18:38 to 21:19:25",
        "From 21:06:06 to 21:19:48 UTC: 186.9 payouts a second while a run was at work",
    ),
    "currencies": (
        "Outcome Rows GHS XOF NGN KES Asked",
        "and 2 more currencies, below",
        "Outcome Rows ZMW RWF Asked",
    ),
    "waiting": ("waiting for rows in doubt", "2 rows wait, next check in 12 s: 2 had no clear answer"),
    "following": (
        "following the payouts",
        "GHS 5,513,200.00 arrived of GHS 6,014,400.00 asked",
        "400 payouts of the service's list read",
    ),
    "certifying": ("june-2026 certifying", "arrived of GHS 6,014,400.00 asked 12,000 rows, each one decided"),
    "stopped": ("stopped, can be resumed", "The same run command resumes the batch; nothing is paid twice."),
    "killed": (
        "stopped, can be resumed",
        "At 21:19:47 the last run was killed or cut off, with rows under way",
        "96 rows under way will be posted again first, unchanged.",
    ),
    "doubt": (
        "2 rows in doubt",
        "In doubt: do not pay these again; the run looks them up",
        "payments payouts reconcile june.csv.ledger",
        "2 × no reason given · GHS 1,002.40",
        "503 timeout 201 … (4 more) … 503 timeout",
    ),
    "complete": (
        "complete and certified",
        "GHS 6,014,400.00 arrived of GHS 6,014,400.00 asked",
        "Every created row is on the service's own list",
        "List read 2026-06-30 21:20:25 UTC",
        "12,000 as asked for, 0 missing, 0 different",
        "metadata.payments_sdk: 12,000, 3 not shown",
        "22 s the last run, 224 a second",
        "No row needs a look",
    ),
    "created": (
        "complete and certified",
        "GHS 6,014,400.00 created of GHS 6,014,400.00 asked",
        "12,000 payouts are created, and not final yet: each may still fail.",
    ),
    "rejected": (
        "complete, 40 rejected",
        "Rejected: nothing was created",
        "payments payouts retry-failed june.csv.ledger --rejected",
        "40 × HTTP 422: The given data was invalid. · GHS 20,048.00",
        "emp-00007",
    ),
    "failed": (
        "complete, 50 failed, 40 rejected, 2 in conflict",
        "Certified",
        "GHS 5,964,280.00 arrived of GHS 6,014,400.00 asked",
        "Cancelled 8 4,009.60 Rejected 40 20,048.00",
        "50 payouts failed for good: payments payouts export june.csv.ledger failed.csv --state failed",
    ),
    "returned": (
        "complete, 1 returned",
        "These payouts had ended, and the service's list then showed them otherwise: row 61: po_61 had ended",
        "Returned: the payout had arrived, and the money came back",
        "payments payouts retry-failed june.csv.ledger --row N",
        "1 × no reason given · GHS 501.20",
        "created at once",
    ),
    "excess": (
        "complete, 2 in excess",
        "row 7: po_7, an earlier payout of it, is completed on the list",
        "In excess 2 1,002.40",
        "Ask the service's support to return them. 2 payouts · GHS 1,002.40",
    ),
    "conflict": (
        "complete, 2 in conflict",
        "Moved in conflict 1 501.20",
        "1 payout · GHS 501.20 In conflict: compare each with",
        "2 × HTTP 409: The reference belongs to another payout. · GHS 1,002.40",
    ),
    "unclear": (
        "complete, 1 contradictory",
        "row 12: po_12 is completed with failed_at: the service contradicts itself",
        "Not final yet: the payout's status and times contradict each other",
        "1 payout whose status and times contradict each other: ask the service's support",
        "1 × completed with failed_at: the service contradicts itself · GHS 501.20",
    ),
    "rounded": (
        "complete, not confirmed",
        "row 3: po_3 is of GHS 501.19999999999999999, and GHS 501.20 was asked for",
        "Rounded GHS -0.00000000000000001 in all, against what was asked for",
    ),
    "unconfirmed": (
        "complete, not confirmed",
        "row 12: pyt_12 is not in the list",
        "The service's list does not confirm the ledger: read the findings.",
    ),
}


@pytest.mark.parametrize("name", SHOWN)
def test_each_state_says_what_it_is(name: str) -> None:
    now = states()[name]
    html = html_of(now)
    words = words_of(html)
    for text in SHOWN[name]:
        assert text in words.replace("\N{NO-BREAK SPACE}", " "), words
    assert ("http-equiv" in html) is (now.phase != "ended")  # without JavaScript it loads itself anew
    assert not re.search(r"\sstyle=|\son\w+=", html)
    assert ("No row needs a look" in words) is (name in ("complete", "created"))
    assert set(SHOWN) == set(states())


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


def test_a_batch_whose_rows_are_all_cancelled_has_created_nothing() -> None:
    words = words_of(html_of(snapshot(phase="ended", report=report({"cancelled": 8}))))
    assert "GHS 0.00 created of GHS 4,009.60 asked" in words
    assert "Cancelled 8 4,009.60" in words


def test_a_row_has_its_facts_its_attempts_and_its_place_in_the_inspector() -> None:
    now = states()["running"]

    def words(one: RowView) -> str:
        return words_of(FILES.render("row.html", view.row_context(now, one)))

    failed = FILES.render("row.html", view.row_context(now, row(41)))
    assert "http://127.0.0.1:20999/_sandbox/payouts" in failed
    said = words_of(failed)
    for text in (
        "june-2026 / emp-00041",
        "GHS 1,337.76 nccuq4qomf2whi5tzrh7dyj00041aukiqa failed",
        "Row 41, line 42",
        "Instrument phone number ***",
        "21:19:26 503 90 ms 21:19:28 timeout 2 s 21:19:31 201 310 ms",
        "payments payouts show june.csv.ledger emp-00041 prints this in a terminal.",
    ):
        assert text in said
    assert view.row_context(now, row(41, base_url="https://pay.example/v1"))["inspector"] is None
    masked = row(41, row_key="***")
    assert str(view.row_context(now, masked)["show"]).endswith(f" {masked.reference}"), "a key may be 41"
    nameless = attrs.evolve(masked, reference="***")
    assert str(view.row_context(now, nameless)["show"]).endswith(" june.csv.ledger 41")
    once = row(
        7,
        outcome=Outcome.ARRIVED,
        payout_status="completed",
        failure_code=None,
        failure_message=None,
        attempts=RowAttempts(),
        row_key="***",
    )
    assert "row 7" in words(once)
    assert "It was sent once, and the answer created the payout." in words(once)
    unsent = attrs.evolve(
        once, outcome=Outcome.NOT_STARTED, payout_status=None, first_sent=None, last_sent=None, payout_id=None
    )
    assert "It was not sent yet." in words(unsent)
    listed = attrs.evolve(once, first_sent=None, last_sent=None, payout_money="GHS 9.99")
    assert "Payout is of GHS 9.99" in words(listed)
    assert "No request is recorded; the service's list shows its payout." in words(listed)
    claimed = attrs.evolve(once, outcome=Outcome.UNDER_WAY, payout_status=None, payout_id=None)
    assert "No answer is recorded yet." in words(claimed)
    words_of_service = (
        StatusChange("completed", "po_7", BEGAN + 9.0, BEGAN + 3.0),
        StatusChange("completed", "po_7", BEGAN + 60.0, None, contradicts=True),
    )
    turned = words(attrs.evolve(once, statuses=words_of_service))
    assert (
        "Statuses 2026-06-30 21:19:29 UTC completed; 2026-06-30 21:20:26 UTC completed (contradicts itself)"
        in turned
    )
    assert "Statuses" not in words(attrs.evolve(once, statuses=words_of_service[:1]))
    replayed = attrs.evolve(row(1).attempts.first[0], replayed=True)
    assert "replayed" in words(attrs.evolve(once, attempts=RowAttempts(1, (replayed,))))


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


def test_the_speed_chart_has_a_run_its_limit_and_the_time_that_is_left() -> None:
    assert charts.speed_chart([], None) is None
    chart = drawn(series(), left=22.0)
    assert (chart.begin, chart.end) == ("21:19:26", "≈ 21:20:10")
    assert chart.sentence == (
        "From 21:19:26 to 21:19:48 UTC: 224.2 payouts a second while a run was at work, 394 at most. "
        "The limit is 1,000 a second. It was closed for 1.5 s after an answer 429."
    )
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
    [("201", "ok"), ("422", "bad"), ("429", "wait"), ("503", "wait"), ("302", "idle"), ("timeout", "bad")],
)
def test_an_attempt_has_the_colour_of_its_answer(answer: str, tone: str) -> None:
    assert charts.attempt_tone(answer) == tone


def test_a_snapshot_differs_by_its_figures_and_not_by_its_time() -> None:
    assert snapshot(rows_read=1, at=1.0) == snapshot(rows_read=1, at=2.0)
    assert snapshot(rows_read=1) != snapshot(rows_read=2)
    one, other = report({"arrived": 1}), report({"arrived": 2})
    assert snapshot(one, at=1.0) == snapshot(one, at=2.0) != snapshot(other, at=2.0)


def test_what_needs_a_person_comes_by_urgency_with_its_meaning() -> None:
    now = attrs.evolve(states()["excess"], causes=causes())
    headings = re.findall(r"<h3>(.*?)</h3>", html_of(now))
    assert [heading.split(":")[0] for heading in headings] == [
        "In excess",
        "In doubt",
        "In conflict",
        "Not final yet",
        "Returned",
        "Failed",
        "Rejected",
    ]


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
