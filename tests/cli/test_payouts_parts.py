"""What `payments payouts` counts, takes, advises and draws, without a run."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from decimal import Decimal

import attrs
import pytest
from rich.console import Console

from payments_async._cli._output import JsonLines, Terminal
from payments_async._cli.payouts.confirm import Confirmation, difference, flags, parsed
from payments_async._cli.payouts.messages import message_of
from payments_async._cli.payouts.options import amount_of, delimiter_of, seconds_of, share_of, shortest
from payments_async._cli.payouts.progress import BarView, LinesView
from payments_async._cli.payouts.summary import show_causes, state_table
from payments_async.bulk import Activity, BatchFigures, Cause, Outcome, RunSeries, SeriesBucket
from payments_async.bulk._activity import Doing
from payments_async.bulk._protocol.outcomes import ExtraPayout
from payments_async.bulk._protocol.run_figures import SpeedFigures
from payments_async.bulk._report import batch_figures_of
from payments_async.bulk._texts.advice import after_run
from payments_async.bulk._texts.figures import activity_text, length_and_pace
from payments_async.bulk._texts.ledger_address import LedgerAddress
from payments_async.bulk._texts.outcomes import title_of
from payments_async.bulk._texts.quantities import duration_text, rate_text
from payments_async.bulk.ledger_errors import LedgerLocked
from tests.support.snapshots import Snapshots


def figures(
    amount: str = "1.50", currencies: Sequence[str] = ("XOF",), in_excess: int = 0, **rows: int
) -> BatchFigures:
    """So many rows of each outcome, each of 1.50; `created` ones are not final."""
    totals = {
        (Outcome("not_final" if word == "created" else word), currency): (number, Decimal(amount) * number)
        for word, number in rows.items()
        for currency in currencies
    }
    return batch_figures_of(totals, {(ExtraPayout.IN_EXCESS, "XOF"): (in_excess, Decimal(in_excess))})


def drawn(renderable: object, width: int) -> list[str]:
    """The lines it takes on a terminal of this width."""
    console = Console(file=io.StringIO(), width=width, force_terminal=True, color_system=None)
    console.print(renderable)
    assert isinstance(console.file, io.StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90), ("90s", 90), ("15m", 900), ("2h", 7200), ("1.5h", 5400), ("0", 0)]
)
def test_durations_are_read_with_their_unit(text: str, seconds: float) -> None:
    assert seconds_of(text) == seconds
    printed = shortest(seconds)
    assert printed is None or seconds_of(printed) == seconds


@pytest.mark.parametrize("text", ["", "-1", "soon", "1w", "1e9", "٣", "nan", "31d", " 5", "1h30m"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration"):
        seconds_of(text)


@pytest.mark.parametrize("text", ["0", "0.00", "-1", "1e3", "NaN", "Infinity", "1,200", "٣", "", "1."])
def test_what_is_no_amount_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not an amount"):
        amount_of(text)


def test_shares_are_read_as_fractions_or_percent() -> None:
    assert [share_of(text) for text in ("0", "0.05", "5%", "100%", "1")] == [0, 0.05, 0.05, 1, 1]
    for text in ("2", "101%", "nan", "-0.1", "", "5 %"):
        with pytest.raises(ValueError, match="is not a share"):
            share_of(text)


def test_a_delimiter_is_one_sign_or_a_tab_by_its_name() -> None:
    assert [delimiter_of(text) for text in (";", "|", ",", "tab", "\\t", "\t")] == [*";|,", *"\t\t\t"]
    for text in ("", ";;", "a", "1", '"', "'", " ", "\n"):
        with pytest.raises(ValueError, match="is not a delimiter"):
            delimiter_of(text)


def test_confirmed_totals_are_compared_exactly() -> None:
    totals = {"XOF": Decimal("1200.50"), "GHS": Decimal("1E+2")}
    assert flags(totals) == "--confirm-total 'GHS 100' --confirm-total 'XOF 1200.50'"
    assert parsed(["xof 1200.5", "GHS 100"]) == totals
    assert difference(parsed(["xof 1200.5", "GHS 100.00"]), totals) is None
    assert difference(parsed(["XOF 1200.51", "GHS 100"]), totals) is not None


def test_a_confirmation_is_recognised_only_when_nothing_differs() -> None:
    said = Confirmation("june", "hash", "here", {"XOF": Decimal("10.50")})
    assert said.is_same_as(said.to_json())
    for other in (
        Confirmation("july", "hash", "here", said.totals),
        Confirmation("june", "other", "here", said.totals),
        Confirmation("june", "hash", "there", said.totals),
        Confirmation("june", "hash", "here", {"XOF": Decimal("10.51")}),
    ):
        assert not other.is_same_as(said.to_json())
    assert not said.is_same_as("")
    assert not said.is_same_as("[]")


def test_the_total_that_is_typed_back_is_never_rounded() -> None:
    parts = {Outcome.NOT_STARTED: "99999999999999999999.999999999", Outcome.NOT_FINAL: "0.000000002"}
    seen = batch_figures_of({(each, "XOF"): (1, Decimal(amount)) for each, amount in parts.items()})
    assert seen.payable == {"XOF": Decimal("100000000000000000000.000000001")}


def test_figures_add_up_and_leave_cancelled_rows_out_of_what_is_to_be_paid() -> None:
    seen = figures(created=4, rejected=1, in_doubt=2, not_started=3, cancelled=2)
    assert (seen.rows, seen.done, seen.is_untouched) == (12, 7, False)
    assert seen.payable == {"XOF": Decimal("15.00")}
    assert seen.facts()["sums"]["XOF"]["created"] == "6.00"
    assert figures(not_started=3, cancelled=1).is_untouched


def test_the_time_left_is_that_of_the_open_rows_of_which_as_many_are_created_as_so_far() -> None:
    for seen, pace, seconds in (
        (figures(not_started=500, created=100), 100.0, 5.0),
        (figures(not_started=400, under_way=100, created=50, rejected=50), 100.0, 2.5),
        (figures(not_started=5), 1.0, None),
        (figures(created=5, in_doubt=1), 1.0, None),
        (figures(not_started=5, created=1), 0.0, None),
    ):
        assert seen.seconds_left is None, "its speed was not read"
        assert attrs.evolve(seen, speed=SpeedFigures(per_second=pace)).seconds_left == seconds


def test_a_run_is_as_long_as_from_its_first_answer_to_its_last() -> None:
    run = RunSeries((SeriesBucket(100, created=30), SeriesBucket(103, created=50, failed=9)))
    assert length_and_pace(run) == (4.0, 20.0)
    assert length_and_pace(RunSeries(run.buckets[:1])) is None, "it is counted in whole seconds"
    assert length_and_pace(RunSeries((SeriesBucket(100, 4, failed=9),))) is None


def test_people_see_the_largest_causes_and_how_many_more_there_are(
    capsys: pytest.CaptureFixture[str], assert_snapshot: Snapshots
) -> None:
    sums = {"GHS": Decimal("649.60"), "XOF": Decimal("10.10")}
    rejected = Cause(Outcome.REJECTED, "HTTP 422: The given data was invalid.", 20, sums)
    doubt = Cause(Outcome.IN_DOUBT, None, 1, {"GHS": Decimal("0.10")})
    long = Cause(Outcome.FAILED, "so long " * 40, 2, {"GHS": Decimal(2)})
    unclear = Cause(Outcome.NOT_FINAL, "completed with failed_at", 1, {"GHS": Decimal(1)})
    show_causes([doubt, unclear, rejected, *[long] * 10], Terminal())
    assert_snapshot(capsys.readouterr().out)
    show_causes([], Terminal())
    assert capsys.readouterr().out == ""


def test_durations_are_written_for_people() -> None:
    printed = [duration_text(seconds) for seconds in (0.42, 3, 42.4, 200, 7500)]
    assert printed == ["0.4 s", "3 s", "42 s", "3 min 20 s", "2 h 05 min"]
    assert title_of("june") == "batch june"
    assert title_of("a" * 64) == f"batch {'a' * 12}…"


LIMIT = "as many as --max-rows allows"
ENDS: list[tuple[int, str | None, dict[str, int]]] = [
    (0, None, {"arrived": 5}),
    (1, None, {"failed": 2, "returned": 1}),
    (0, None, {"failed": 1}),
    (1, None, {"rejected": 2, "conflict": 1}),
    (1, None, {"conflict": 1}),
    (1, None, {"rejected": 1}),
    (1, None, {"cancelled": 3}),
    (3, None, {"in_doubt": 3}),
    (3, None, {"in_doubt": 4, "rejected": 5, "cancelled": 2, "failed": 3}),
    (3, None, {"in_doubt": 4, "cancelled": 2}),
    (75, "the time was over", {"failed": 1, "created": 2, "conflict": 1, "in_excess": 3, "cancelled": 2}),
    (75, "SIGTERM", {"not_started": 3}),
    (75, LIMIT, {"not_started": 3}),
    (2, "the service refused the key", {"not_started": 3, "under_way": 2}),
    *((0, None, {"arrived": 2500 - awaited, "created": awaited}) for awaited in (1, 2000)),
    *((code, None, {"arrived": 2, "created": 3}) for code in (1, 3)),
]


def test_each_exit_code_says_what_to_do_next(assert_snapshot: Snapshots) -> None:
    ledger = LedgerAddress("a b.ledger")
    for code, stopped, rows in ENDS:
        said = after_run(figures(**rows), code, stopped, ledger)
        assert_snapshot(said, f"{code} {stopped or 'complete'} {rows}")
    assert_snapshot(after_run(figures(arrived=1), 1, None, ledger, clean=False), "not clean")
    for code in (1, 75):
        for payouts in (1, 2):
            some = attrs.evolve(figures(arrived=2, not_final=2), contradicting=payouts)
            assert_snapshot(after_run(some, code, "it was late", ledger), f"{code} contradicting {payouts}")


def test_a_ledger_that_another_run_holds_is_named_in_the_command() -> None:
    said = message_of(LedgerLocked("my june.ledger", pid=7, since=None))
    assert said.startswith("my june.ledger: in use by process 7; wait for it to end, or stop it")
    assert "`payments payouts status 'my june.ledger'` shows where it is" in said


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_bar_fits_the_terminal_and_shows_what_is_moved(width: int, assert_snapshot: Snapshots) -> None:
    bar = BarView("Paying")
    assert_snapshot(drawn(bar, width), "0")
    bar.read(1200)
    assert_snapshot(drawn(bar, width), "1 reads")
    bar.show(figures(not_started=10_000), 0.0)
    paying = figures(not_started=8_000, created=1_990, rejected=7, in_doubt=3)
    bar.show(attrs.evolve(paying, speed=SpeedFigures(per_second=998.0)), 2.0)
    bar.note("Ctrl-C: finishing")
    assert_snapshot(drawn(bar, width), "2 pays")
    speed = SpeedFigures(
        1000.0, 1000.0, closed=True, p95=0.18, refused=3, failed=12, minute=(9,) * 59 + (310,)
    )
    bar = BarView("Paying")
    bar.show(figures(not_started=10_000), 0.0)
    bar.show(attrs.evolve(figures(not_started=8_000, created=2_000), speed=speed), 2.0)
    assert_snapshot(drawn(bar, width), "3 has its rate against the limit")
    speed = SpeedFigures(0.5, 0.25, p95=1.44, failed=1, minute=(0, 0))
    bar.show(attrs.evolve(figures(not_started=1, created=2), speed=speed), 3.0)
    assert_snapshot(drawn(bar, width), "4 is slow")
    assert max(map(len, drawn(bar, width))) <= width


def test_programs_get_the_same_figures(capsys: pytest.CaptureFixture[str]) -> None:
    speed = SpeedFigures(1000.0, p50=0.1, p95=0.18, refused=3, minute=(1, 2))
    LinesView(JsonLines()).show(attrs.evolve(figures(created=3), speed=speed), 0.0)
    answers = json.loads(capsys.readouterr().out)["answers"]
    assert answers == json.loads(json.dumps(speed.facts()))


FOLLOWED = figures("1", arrived=20, failed=2, created=8)


def test_the_bar_says_what_is_done(assert_snapshot: Snapshots) -> None:
    bar = BarView("Paying")
    why = "3 had no clear answer and will be posted again, unchanged"
    waits = Activity(doing="waiting", waiting=3, why=why, next_look=12.2)
    bar.show(figures(in_doubt=3), 0.0)
    bar.show(attrs.evolve(figures(in_doubt=3, created=1), activity=waits), 2.0)
    assert_snapshot(drawn(bar, 80), "waiting")
    bar = BarView("Paying")
    bar.show(attrs.evolve(FOLLOWED, activity=Activity(doing="following")), 0.0)
    bar.note("all sent; followed until final, 5 min at most")
    assert_snapshot(drawn(bar, 80), "following")


def test_the_activity_is_shown_to_people_and_programs(capsys: pytest.CaptureFixture[str]) -> None:
    waits = Activity(doing="paying", waiting=1, why="it was cut")
    reads = Activity(doing="reconciling", listed=1_200)
    assert activity_text(None) == activity_text(Activity(doing="reconciling")) == ""
    assert activity_text(waits) == "1 row waits: it was cut"
    later = activity_text(attrs.evolve(waits, next_look=12.0), since=2.0)
    assert later == "1 row waits, next check in 10 s: it was cut"
    assert activity_text(reads) == "reading the service's list, 1,200 payouts so far"
    assert activity_text(attrs.evolve(waits, doing="reading")) == "reading the service's list"
    rests = activity_text(attrs.evolve(reads, doing="following", next_look=9.0))
    assert rests == "1,200 payouts of the service's list read, next check in 9 s"
    LinesView(JsonLines()).show(attrs.evolve(figures(in_doubt=1), activity=waits), 0.0)
    line = json.loads(capsys.readouterr().out)
    assert attrs.asdict(waits).items() <= line.items()


def test_a_bar_keeps_pace_and_time_left_while_rows_wait_in_doubt() -> None:
    bar, speed = BarView("Paying"), SpeedFigures(1000.0, 100.0)
    paying = attrs.evolve(figures(not_started=2_000, created=2_000, in_doubt=3), speed=speed)
    bar.show(attrs.evolve(paying, activity=Activity(doing="paying", waiting=3, why="it was cut")), 2.0)
    assert "100 a second of 1,000 · 20 s left" in [line.strip() for line in drawn(bar, 80)]
    kinds: tuple[Doing, ...] = ("waiting", "reading")
    for doing in kinds:
        bar.show(attrs.evolve(paying, activity=Activity(doing=doing, waiting=3)), 3.0)
        assert "a second of" not in " ".join(drawn(bar, 80))
        assert doing.capitalize() in drawn(bar, 80)[0]


@pytest.mark.parametrize("doing", ["following", "reconciling"])
def test_a_bar_has_no_pace_once_all_is_sent(doing: Doing, assert_snapshot: Snapshots) -> None:
    bar = BarView("Paying")
    speed = SpeedFigures(1000.0, 9.0, p95=0.18, minute=(9, 9))
    bar.show(figures(not_started=2_000), 0.0)
    paying = attrs.evolve(figures(created=2_000), speed=speed, activity=Activity(doing="paying"))
    bar.show(paying, 2.0)
    assert "a second of 1,000" in " ".join(drawn(bar, 80))
    bar.show(attrs.evolve(paying, activity=Activity(doing=doing)), 3.0)
    assert_snapshot(drawn(bar, 80))


@pytest.mark.parametrize("width", [42, 50, 80])
def test_the_table_fits_the_terminal_and_shows_what_became_of_rows(
    width: int, assert_snapshot: Snapshots
) -> None:
    tables = {
        "ended": figures(arrived=2, returned=1, failed=3, created=4),
        "arrived": figures(arrived=3),
        "five currencies": figures(str(10**12), ("GHS", "KES", "NGN", "XAF", "XOF"), created=1),
        "two currencies": figures(str(10**12), ("GHS", "XOF"), created=1),
    }
    for name, table in tables.items():
        lines = drawn(state_table(table), width)
        assert max(map(len, lines)) <= width
        assert_snapshot(lines, name)


def test_passes_over_the_input_are_numbered(capsys: pytest.CaptureFixture[str]) -> None:
    bar = BarView("Reading")
    bar.read(500, 2)
    assert drawn(bar, 80) == ["  · Reading    500 rows, pass 2"]
    LinesView(JsonLines()).read(500, 2)
    assert json.loads(capsys.readouterr().out)["pass"] == 2


def test_what_the_limit_counts_is_shown_once_a_minute_is_over() -> None:
    for seconds, words in ((59, "1,500 a second"), (60, "1,500 a second · 60,000 in the last minute")):
        bar, speed = BarView("Paying"), SpeedFigures(per_second=1500.0, minute=(1000,) * seconds)
        bar.show(attrs.evolve(figures(created=2), speed=speed), 0.0)
        assert words in [line.strip() for line in drawn(bar, 80)]
    assert (rate_text(0.36), rate_text(1135.4)) == ("0.4 a second", "1,135 a second")


async def test_lines_come_at_most_once_a_second(capsys: pytest.CaptureFixture[str]) -> None:
    lines = LinesView(JsonLines())
    for moment in range(30):
        lines.show(figures(not_started=30 - moment, created=moment), moment / 10)
    lines.close()
    printed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["rows"]["created"] for line in printed] == [0, 10, 20]
    assert (printed[-1]["per_second"], printed[-1]["seconds_left"]) == (0.0, None)
    pace = SpeedFigures(per_second=2.5)
    LinesView(JsonLines()).show(attrs.evolve(figures(not_started=5, created=1), speed=pace), 9.0)
    line = json.loads(capsys.readouterr().out)
    assert (line["per_second"], line["seconds_left"]) == (2.5, 2)


def test_progress_without_a_terminal_is_a_line_of_text(capsys: pytest.CaptureFixture[str]) -> None:
    view = LinesView(Terminal(), 30.0)
    view.read(500)
    assert "Reading    500 rows" in capsys.readouterr().out
    LinesView(Terminal(), 30.0).show(figures(created=3, not_started=1), 0.0)
    assert "Progress   3 of 4 rows" in capsys.readouterr().out
