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
    capsys: pytest.CaptureFixture[str],
) -> None:
    sums = {"GHS": Decimal("649.60"), "XOF": Decimal("10.10")}
    rejected = Cause(Outcome.REJECTED, "HTTP 422: The given data was invalid.", 20, sums)
    doubt = Cause(Outcome.IN_DOUBT, None, 1, {"GHS": Decimal("0.10")})
    long = Cause(Outcome.FAILED, "so long " * 40, 2, {"GHS": Decimal(2)})
    unclear = Cause(Outcome.NOT_FINAL, "completed with failed_at", 1, {"GHS": Decimal(1)})
    show_causes([doubt, unclear, rejected, *[long] * 10], Terminal())
    printed = capsys.readouterr().out
    assert "· In doubt   1 × no reason given · GHS 0.10" in printed
    assert "✗ Rejected   20 × HTTP 422: The given data was invalid. ·" in printed
    assert "GHS 649.60, XOF 10.10" in " ".join(printed.split())
    assert "✗ Not final yet 1 × completed with failed_at · GHS 1" in printed, "a space after a long name"
    assert printed.count("✗ Failed") == 7
    assert "so long…" in printed
    assert "· More       6 rows with 3 more causes" in printed
    show_causes([], Terminal())
    assert capsys.readouterr().out == ""


def test_durations_are_written_for_people() -> None:
    printed = [duration_text(seconds) for seconds in (0.42, 3, 42.4, 200, 7500)]
    assert printed == ["0.4 s", "3 s", "42 s", "3 min 20 s", "2 h 05 min"]
    assert title_of("june") == "batch june"
    assert title_of("a" * 64) == f"batch {'a' * 12}…"


def test_each_exit_code_says_what_to_do_next() -> None:
    def printed(code: int, stopped: str | None = None, **rows: int) -> str:
        return " ".join(after_run(figures(**rows), code, stopped, LedgerAddress("a b.ledger")))

    assert printed(0, arrived=5) == ""
    back = printed(1, failed=2, returned=1)
    assert "2 payouts failed for good and 1 payout returned after arriving: " in back
    assert "failed-and-returned.csv --state failed --state returned" in back
    failed = printed(0, failed=1)
    assert failed.startswith("1 payout failed for good: `payments payouts export 'a b.ledger' failed.csv")
    assert (
        "`payments payouts retry-failed 'a b.ledger'` makes the rows of those that failed new again."
        in failed
    )
    assert "--state rejected --state conflict" in printed(1, rejected=2, conflict=1)
    assert "2 rows rejected and 1 row in conflict" in printed(1, rejected=2, conflict=1)
    assert "names the payout" in printed(1, conflict=1)
    assert "names the payout" not in printed(1, rejected=1)
    assert "3 rows cancelled; every other row was created." in printed(1, cancelled=3)
    assert "`payments payouts reconcile 'a b.ledger'` only reads" in printed(3, in_doubt=3)
    both = printed(3, in_doubt=4, rejected=5, cancelled=2, failed=3)
    for said in ("4 rows in doubt: ", "5 rows rejected: ", "3 payouts failed for good: "):
        assert said in both
    assert "cancelled" not in printed(3, in_doubt=4, cancelled=2)
    stopped = printed(75, "the time was over", failed=1, created=2, conflict=1, in_excess=3, cancelled=2)
    for said in ("1 payout failed for good", "1 row in conflict", "3 payouts in excess"):
        assert said in stopped
    assert "every other row was created" not in stopped
    assert printed(75, "SIGTERM", not_started=3).startswith("Stopped: SIGTERM. The same `run` command")
    assert "Raise that limit" in printed(75, "as many as --max-rows allows", not_started=3)
    refused = printed(2, "the service refused the key", not_started=3, under_way=2)
    assert "2 rows under way" in refused
    assert refused.endswith("Fix that and run the same command again to resume; nothing is paid twice.")
    unclear = after_run(figures(arrived=1), 1, None, LedgerAddress("l"), clean=False)
    assert "does not confirm" in " ".join(unclear)


def test_a_ledger_that_another_run_holds_is_named_in_the_command() -> None:
    said = message_of(LedgerLocked("my june.ledger", pid=7, since=None))
    assert said.startswith("my june.ledger: in use by process 7; wait for it to end, or stop it")
    assert "`payments payouts status 'my june.ledger'` shows where it is" in said


@pytest.mark.parametrize(("awaited", "printed"), [(1, "1 payout is"), (2000, "2,000 payouts are"), (0, None)])
def test_created_payouts_are_said_not_to_have_arrived(awaited: int, printed: str | None) -> None:
    some = figures(arrived=2500 - awaited, created=awaited)
    said = after_run(some, 0, None, LedgerAddress("june.csv.ledger"))
    if printed is None:
        assert said == []
    else:
        (sentence,) = said
        assert sentence.startswith(f"{printed} created, and not final yet: each may still fail.")
        assert "`--wait-final 2h`" in sentence
        assert "`payments payouts reconcile june.csv.ledger`" in sentence
        for code in (1, 3):
            assert sentence in after_run(some, code, None, LedgerAddress("june.csv.ledger"))


@pytest.mark.parametrize("code", [1, 75])
def test_payouts_that_contradict_themselves_are_no_payouts_to_follow(code: int) -> None:
    some = attrs.evolve(figures(arrived=2, not_final=2), contradicting=2)
    unclear = "2 payouts whose status and times contradict each other: ask the service's support"
    *_, said = after_run(some, code, "the time was over", LedgerAddress("l"))
    assert said.startswith(unclear)
    assert "`payments payouts reconcile l` records what the list says then." in said
    assert "--wait-final" not in said
    one, rest = after_run(attrs.evolve(some, contradicting=1), 1, None, LedgerAddress("l"))
    assert one.startswith("1 payout whose status")
    assert rest.startswith("1 payout is created, and not final yet")


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_bar_fits_the_terminal_and_shows_what_is_moved(width: int) -> None:
    bar = BarView("Paying")
    assert drawn(bar, width) == ["  · Paying     …"]
    bar.read(1200)
    assert drawn(bar, width) == ["  · Paying     1,200 rows"]
    bar.show(figures(not_started=10_000), 0.0)
    paying = figures(not_started=8_000, created=1_990, rejected=7, in_doubt=3)
    bar.show(attrs.evolve(paying, speed=SpeedFigures(per_second=998.0)), 2.0)
    bar.note("Ctrl-C: finishing")
    first, *rest = drawn(bar, width)
    assert len(first) <= width
    assert first.startswith("  · Paying")
    assert "1,997 of 10,000 19 %" in first
    if width >= 80:
        assert [line.strip() for line in rest] == [
            "1,990 created · 3 in doubt · 7 rejected",
            "998 a second · 8 s left",
            "0 refused (429) · 0 other errors · 0 unanswered",
            "XOF 2,985.00 of 15,000.00",
            "Ctrl-C: finishing",
        ]


@pytest.mark.parametrize(("width", "seconds"), [(60, 26), (80, 46), (120, 60)])
def test_the_board_shows_the_rate_against_the_limit_and_what_came_back(width: int, seconds: int) -> None:
    bar = BarView("Paying")
    speed = SpeedFigures(
        1000.0, 1000.0, closed=True, p95=0.18, refused=3, failed=12, minute=(9,) * 59 + (310,)
    )
    bar.show(figures(not_started=10_000), 0.0)
    bar.show(attrs.evolve(figures(not_started=8_000, created=2_000), speed=speed), 2.0)
    _, created, pace, chart, answers, _ = [line.strip() for line in drawn(bar, width)]
    assert created == "2,000 created · 0 in doubt"
    assert pace.startswith("1,000 a second of 1,000, closed by a 429 · 8")
    assert chart == "▁" * (seconds - 1) + "█  peak 310 a second"
    assert answers.startswith("p95 180 ms · 3 refused (429) · 12 other")
    if width >= 80:
        assert answers.endswith("12 other errors · 0 unanswered")
    assert max(map(len, drawn(bar, width))) <= width
    bar.show(
        attrs.evolve(
            figures(not_started=1, created=2),
            speed=SpeedFigures(0.5, 0.25, p95=1.44, failed=1, minute=(0, 0)),
        ),
        3.0,
    )
    _, _, pace, answers, _ = [line.strip() for line in drawn(bar, 80)]
    assert "a second of 0.5 ·" in pace
    assert answers == "p95 1.4 s · 0 refused (429) · 1 other error · 0 unanswered"


def test_programs_get_the_same_figures(capsys: pytest.CaptureFixture[str]) -> None:
    speed = SpeedFigures(1000.0, p50=0.1, p95=0.18, refused=3, minute=(1, 2))
    LinesView(JsonLines()).show(attrs.evolve(figures(created=3), speed=speed), 0.0)
    answers = json.loads(capsys.readouterr().out)["answers"]
    assert answers == json.loads(json.dumps(speed.facts()))


def test_the_bar_says_which_rows_wait_and_when_the_next_look_is() -> None:
    bar = BarView("Paying")
    why = "3 had no clear answer and will be posted again, unchanged"
    waits = Activity(doing="waiting", waiting=3, why=why, next_look=12.2)
    bar.show(figures(in_doubt=3), 0.0)
    bar.show(attrs.evolve(figures(in_doubt=3, created=1), activity=waits), 2.0)
    first, *rest = drawn(bar, 80)
    assert first.startswith("  · Waiting")
    assert [line.strip() for line in rest] == [
        "1 created · 3 in doubt",
        "3 rows wait, next check in 12 s: 3 had no clear answer and will …",
        "XOF 1.50 of 6.00",
    ]


def test_the_activity_is_shown_to_people_and_programs(capsys: pytest.CaptureFixture[str]) -> None:
    waits = Activity(doing="paying", waiting=1, why="it was cut")
    reads = Activity(doing="reconciling", listed=1_200)
    assert activity_text(None) == activity_text(Activity(doing="reconciling")) == ""
    assert activity_text(waits) == "1 row waits: it was cut"
    later = activity_text(attrs.evolve(waits, next_look=12.0), since=2.0)
    assert later == "1 row waits, next check in 10 s: it was cut"
    assert activity_text(reads) == "1,200 payouts of the service's list read"
    LinesView(JsonLines()).show(attrs.evolve(figures(in_doubt=1), activity=waits), 0.0)
    line = json.loads(capsys.readouterr().out)
    assert attrs.asdict(waits).items() <= line.items()


def test_the_bar_of_what_is_followed_shows_how_payouts_end() -> None:
    bar = BarView("Paying")
    followed = attrs.evolve(
        figures("1", arrived=20, failed=2, created=8), activity=Activity(doing="following")
    )
    bar.show(followed, 0.0)
    bar.note("all sent; followed until final, 5 min at most")
    first, *rest = drawn(bar, 80)
    assert first.startswith("  · Following")
    assert first.endswith("22 of 30 73 %")
    assert [line.strip() for line in rest] == [
        "20 arrived · 2 failed · 8 not final yet",
        "XOF 20 of 30",
        "all sent; followed until final, 5 min at most",
    ]


@pytest.mark.parametrize(
    ("doing", "lines"),
    [
        ("following", ["0 arrived · 0 failed · 2,000 not final yet", "XOF 0.00 of 3,000.00"]),
        ("reconciling", ["2,000 created · 0 in doubt", "XOF 3,000.00 of 3,000.00"]),
    ],
)
def test_a_bar_has_no_pace_once_all_is_sent(doing: Doing, lines: list[str]) -> None:
    bar = BarView("Paying")
    speed = SpeedFigures(1000.0, 9.0, p95=0.18, minute=(9, 9))
    bar.show(figures(not_started=2_000), 0.0)
    paying = attrs.evolve(figures(created=2_000), speed=speed, activity=Activity(doing="paying"))
    bar.show(paying, 2.0)
    assert "a second of 1,000" in " ".join(drawn(bar, 80))
    bar.show(attrs.evolve(paying, activity=Activity(doing=doing)), 3.0)
    assert [line.strip() for line in drawn(bar, 80)][1:] == lines


def test_the_table_shows_under_created_what_arrived_and_failed() -> None:
    ended = figures(arrived=2, returned=1, failed=3, created=4)
    printed = drawn(state_table(ended), 80)
    assert [line.split() for line in printed if line.strip()][5:] == [
        ["Created", "10", "15.00"],
        ["not", "final", "yet", "4", "6.00"],
        ["arrived", "2", "3.00"],
        ["failed", "3", "4.50"],
        ["returned", "1", "1.50"],
    ]
    assert ["XOF", "3.00", "15.00"] in [line.split() for line in drawn(state_table(ended), 42)]
    assert not any("failed" in line for line in drawn(state_table(figures(arrived=3)), 80))


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


def test_many_currencies_are_shown_below_each_other() -> None:
    codes = ("GHS", "KES", "NGN", "XAF", "XOF")
    printed = drawn(state_table(figures(str(10**12), codes, created=1)), 80)
    assert max(map(len, printed)) <= 80
    assert sum("1,000,000,000,000" in line for line in printed) == 5
    for width, beside in ((50, False), (80, True)):
        printed = drawn(state_table(figures(str(10**12), ("GHS", "XOF"), created=1)), width)
        assert max(map(len, printed)) <= width
        assert any("1,000,000,000,000" in line for line in printed)
        assert any("GHS" in line and "XOF" in line for line in printed) is beside
        assert any("not final yet" in line for line in printed)


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
