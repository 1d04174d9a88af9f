"""What the page of a batch shows in each state; its charts, in figures and in words; its weight."""

from __future__ import annotations

import re
from html import unescape
from itertools import pairwise

import attrs
import pytest

from payments_async.bulk import (
    AnswerTimes,
    Outcome,
    RowAttempts,
    RowsToLookAt,
    RowView,
    RunSeries,
    SeriesBucket,
)
from payments_async.bulk.protocol.run_figures import time_class
from payments_async.cli.batch_page import charts, view
from payments_async.cli.batch_page.site import FILES
from payments_async.cli.batch_page.source import BatchSnapshot, LedgerDetails
from payments_async.cli.payouts.ledger_address import LedgerAddress
from tests.support.batch_pages import BEGAN, report, row, series, snapshot, states

HEAVIEST = 60_000


def html_of(now: BatchSnapshot) -> str:
    """The page's HTML."""
    return FILES.render("batch.html", view.batch_context(now))


def words_of(html: str) -> str:
    """The words of a page, without its head."""
    body = re.sub(r"(?s)<head>.*?</head>|<title[^>]*>.*?</title>", " ", html)
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", body)).split())


SHOWN = {
    "empty": ("june.csv reading the file", "Reading the file. Every row is checked"),
    "reading": ("7,500 rows of the file are read.",),
    "starting": ("june-2026 paying", "GHS 0.00 created of GHS 6,014,400.00", "12,000 not started"),
    "running": (
        "GHS 2,797,197.20 created of GHS 6,014,400.00 5,581 of 12,000 rows decided",
        "24 s left at 265 a second",
        "5,120 arrived 402 not final yet 96 under way 0 in doubt 59 failed 0 rejected 6,323 not started",
        "limit 1,000 a second · 1 × 429 · closed for 1.5 s",
        "p50 140 ms · p95 296 ms · p99 479 ms",
        "37 no answer",
        "failed emp-00041 nccuq4qo…aukiqa GHS 1,337.76 INSUFFICIENT_FUNDS: The balance does not cover this "
        "payout. 503 timeout 201",
        "The first 3 of 61. payments payouts export june.csv.ledger rows.csv writes all rows.",
    ),
    "currencies": ("XOF", "2 more currencies"),
    "waiting": ("waiting for rows in doubt", "2 rows wait, next check in 12 s: 2 had no clear answer"),
    "certifying": (
        "june-2026 certifying",
        "all of it arrived 12,000 rows, each one decided",
        "12,000 arrived 0 not final yet 0 under way",
    ),
    "stopped": ("stopped, can be resumed", "The same run command resumes the batch; nothing is paid twice."),
    "doubt": (
        "2 rows in doubt",
        "payments payouts reconcile june.csv.ledger",
        "503 timeout 201 … (4 more) … 503 timeout",
    ),
    "failed": (
        "complete, 50 failed, 40 rejected, 2 in conflict",
        "Certified",
        "Created GHS 5,989,340.00 of GHS 6,010,390.40",
        "12,000: 11,900 arrived, 50 failed, 40 rejected, 2 in conflict, 8 cancelled",
        "50 failed 40 rejected 2 in conflict 0 not started 8 cancelled",
        "50 payouts failed for good",
        "2 in conflict · 40 rejected · 50 failed",
    ),
    "complete": (
        "complete and certified",
        "Every created row is on the service's own list",
        "12,000 as asked for, 0 missing, 0 different",
        "metadata.payments_sdk: 12,000, 3 not shown",
        "22 s the last run, 224 a second",
        "No row needs a look",
    ),
    "returned": (
        "complete, 1 returned, 2 in excess",
        "had failed and the row was retried, and the list shows completed",
        "These payouts had ended, and the service's list then showed them otherwise: row 41: po_41 had ended",
        "and more",
        "In excess GHS 1,002.40",
        "11,999 arrived, 1 returned",
    ),
    "unconfirmed": ("complete, not confirmed", "row 12: pyt_12 is not in the list"),
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
    assert set(SHOWN) == set(states())


def test_every_page_with_its_assets_is_light() -> None:
    assets = sum(map(len, FILES.assets.values()))
    now = states()["failed"]
    many = RowsToLookAt(tuple(row(number) for number in range(1, 51)), 90)
    buckets = tuple(SeriesBucket(BEGAN + n, 1, 500 + n % 300, 1, 0, 0, 1000.0, 0.5) for n in range(3600))
    full = attrs.evolve(now, details=LedgerDetails(RunSeries(buckets, series().times), many))
    page = FILES.render("row.html", view.row_context(now, row(41)))
    for html in (html_of(full), page):
        assert len(html.encode()) + assets <= HEAVIEST, (len(html), assets)


def test_a_short_run_has_no_speed_as_it_is_counted_in_whole_seconds() -> None:
    now = states()["complete"]
    short = RunSeries((SeriesBucket(BEGAN, 1, 7),), series().times)
    assert "the last run" in words_of(html_of(now))
    assert "the last run" not in words_of(
        html_of(attrs.evolve(now, details=LedgerDetails(short, RowsToLookAt((), 0))))
    )


def test_a_batch_without_a_name_is_called_after_its_file_and_one_in_a_database_has_its_commands() -> None:
    now = states()["stopped"]
    assert now.report is not None
    nameless = attrs.evolve(now, name="may.csv.ledger", report=attrs.evolve(now.report, batch_id="ab" * 32))
    assert view.title_of(nameless) == "may.csv"
    database = LedgerAddress("postgresql://me:secret@host/db", "june-2026")
    words = words_of(html_of(attrs.evolve(now, ledger=database)))
    assert "payments payouts watch 'postgresql://me:***@host/db' --batch-id june-2026" in words
    assert "secret" not in words
    untouched = attrs.evolve(
        states()["starting"], phase="ended", details=LedgerDetails(RunSeries(), RowsToLookAt((), 0))
    )
    assert "nothing was sent yet" in words_of(html_of(untouched))


def test_a_batch_that_waits_for_its_confirmation_is_not_said_to_be_paid() -> None:
    asked = attrs.evolve(states()["starting"], phase="reading")
    assert "june-2026 not paying yet" in words_of(html_of(asked))


def test_a_batch_whose_rows_are_all_cancelled_has_created_nothing() -> None:
    words = words_of(html_of(snapshot(phase="ended", report=report({"cancelled": 8}))))
    assert "all of it created" not in words
    assert "8 cancelled" in words


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
    claimed = attrs.evolve(once, outcome=Outcome.UNDER_WAY, payout_status=None, payout_id=None)
    assert "No answer is recorded yet." in words(claimed)
    replayed = attrs.evolve(row(1).attempts.first[0], replayed=True)
    assert "replayed" in words(attrs.evolve(once, attempts=RowAttempts(1, (replayed,))))


def test_what_a_service_or_an_operator_wrote_is_text() -> None:
    evil = row(3, failure_message="<script>alert(1)</script>", row_key="<b>", reference="<i>" * 9)
    now = states()["running"]
    page = html_of(attrs.evolve(now, details=LedgerDetails(series(), RowsToLookAt((evil,), 1))))
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


def test_the_speed_chart_has_the_last_run_its_limit_and_the_time_that_is_left() -> None:
    assert charts.speed_chart(RunSeries(), None) is None
    yesterday = SeriesBucket(BEGAN - 86_400, 1, 9_999)
    whole = attrs.evolve(series(), buckets=(yesterday, *series().buckets))
    chart = charts.speed_chart(charts.last_run(whole, None), 22.0)
    assert chart is not None
    assert (chart.begin, chart.end) == ("21:19:26", "≈ 21:20:10")
    assert "9,999" not in chart.sentence
    assert chart.sentence == (
        "From 21:19:26 to 21:19:48 UTC 4,932 payouts were created: 224.2 a second on average, 394 at most. "
        "The limit is 1,000 a second. It was closed for 1.5 s after an answer 429."
    )
    assert [x for x, _ in chart.bands] == [20.45, 22.73]
    slow = RunSeries((SeriesBucket(BEGAN, 1, 3, limit=1000.0),), AnswerTimes())
    far = charts.speed_chart(slow, None)
    assert far is not None  # a limit far above would flatten the chart: it is only named
    assert (far.limit, far.limit_at, far.end) == (1000.0, None, "21:19:27")
    unlimited = charts.speed_chart(RunSeries((SeriesBucket(BEGAN, 1, 3),), AnswerTimes()), None)
    assert unlimited is not None
    assert (unlimited.limit, unlimited.note, "limit" in unlimited.sentence) == (None, "", False)
    assert charts.recent_rate(RunSeries(), BEGAN, None) == 0
    assert charts.recent_rate(series(), BEGAN + 1000.0, None) == 0


def test_a_resumed_run_begins_where_it_was_begun() -> None:
    killed = tuple(SeriesBucket(BEGAN - 30 + n, 1, 50) for n in range(20))
    whole = attrs.evolve(series(), buckets=(*killed, *series().buckets))
    both = charts.last_run(whole, None)  # without a long pause they look like one
    assert (both.begin, both.total.created) == (BEGAN - 30, 5_932)
    resumed = charts.last_run(whole, BEGAN - 2.5)
    assert (resumed.begin, resumed.total.created) == (BEGAN, 4_932)
    just_begun = charts.last_run(whole, BEGAN + 60.0)  # nothing came back yet: the chart of what did
    assert just_begun == both
    early = attrs.evolve(whole, buckets=whole.buckets[:21])
    assert charts.recent_rate(early, BEGAN + 1.0, BEGAN - 2.5) == 80.0
    assert charts.recent_rate(early, BEGAN + 1.0, BEGAN + 1.0) == 0


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


def test_rows_in_doubt_and_rejected_rows_are_told_apart_in_words() -> None:
    refused = {"payout_status": None, "payout_id": None, "failure_code": "HTTP 422"}
    doubt = row(3, outcome=Outcome.IN_DOUBT, failure_message="The reference is taken.", **refused)
    rejected = row(5, outcome=Outcome.REJECTED, failure_message="No such method.", **refused)
    conflict = row(4, outcome=Outcome.CONFLICT, failure_message=None, **{**refused, "failure_code": None})
    details = LedgerDetails(series(), RowsToLookAt((doubt, conflict, rejected, row(6)), 4))
    html = html_of(attrs.evolve(states()["failed"], details=details))
    words = words_of(html)
    for told in (
        "In doubt: do not pay these again; the run looks them up in doubt emp-00003",
        "HTTP 422: The reference is taken.",
        "In conflict: compare each with the service's payout before you pay it again in conflict emp-00004",
        "Rejected: nothing was created rejected emp-00005",
        "HTTP 422: No such method.",
        "Failed: the payout was created, and did not arrive failed emp-00006",
    ):
        assert told in words
    assert [words_of(pill) for pill in re.findall(r'<span class="pill \w+">[^<]*</span>', html)[1:]] == [
        "in doubt",
        "in conflict",
        "rejected",
        "failed",
    ]
