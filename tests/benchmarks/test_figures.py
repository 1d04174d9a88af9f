"""What benchmarks say of their figures: the pure parts."""

from __future__ import annotations

import importlib
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks import charts, instructions, peers, report, results
from benchmarks.__main__ import SUITES
from benchmarks.__main__ import run as run_suite
from benchmarks.counting import counts
from benchmarks.figures import Figure, number
from benchmarks.results import Reached
from benchmarks.windows import refused_fixed, refused_sliding, share_used


def test_a_figure_is_the_median_of_its_rounds_and_its_target_judges_that() -> None:
    figure = Figure.of([0.9, 0.5, 0.6], "calls", target="P1", at_most=0.6)
    assert (figure.median, figure.low, figure.high, figure.met) == (0.6, 0.5, 0.9, True)
    assert figure.row() == "| P1 | calls | 0.60 × | 0.50 to 0.90 | ≤ 0.60 × | met |"


@pytest.mark.parametrize(
    ("bounds", "met"),
    [({"at_most": 0.99}, False), ({"at_least": 1.0}, True), ({"at_least": 1.01}, False), ({}, None)],
)
def test_a_target_bounds_from_above_or_below_or_is_none(bounds: dict[str, Any], met: bool | None) -> None:
    assert Figure.of([1.0], "calls", **bounds).met is met


def test_a_missed_target_stands_out_and_what_must_be_known_stands_beside_it() -> None:
    row = Figure.of([4.0], "rows", "rows/s", target="P8", at_least=5_000.0, note="busy").row()
    assert row == "| P8 | rows (busy) | 4.00 rows/s |  | ≥ 5,000 rows/s | **missed** |"


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (0.004, "0.004"), (0.654, "0.65"), (12.34, "12.3"), (104.4, "104"), (60_000.0, "60,000")],
)
def test_numbers_have_three_digits(value: float, text: str) -> None:
    assert number(value) == text


def reached(*figures: Figure, name: str = "call_cost") -> Reached:
    """A suite's figures."""
    about = {
        "day": "2026-11-21",
        "python": "3.11.7",
        "system": "Linux x86_64",
        "processor": "a processor",
        "cores": 2,
        "libraries": {"aiohttp": "3.14.5"},
    }
    return Reached(
        name, "What does it cost?", list(figures), 12.0, 1.5, about, False, {"cpu": "CPU <over> aiohttp"}
    )


def test_results_come_back_as_they_were_kept(tmp_path: Path) -> None:
    suite = reached(Figure.of([1.0, 2.0], "calls", "µs", target="P5", at_most=3.0, chart="cpu", label="ours"))
    results.write([suite], tmp_path / "results.json")
    assert results.read(tmp_path / "results.json") == {"call_cost": suite}
    assert results.read(tmp_path / "none.json") == {}


def test_the_table_of_targets_goes_by_number_and_leaves_out_what_has_none() -> None:
    figures = [
        Figure.of([1.0], "tenth", target="P10", at_most=2.0),
        Figure.of([1.0], "compared"),
        Figure.of([1.0], "second", target="P2", at_most=2.0),
    ]
    rows = results.judged([reached(*figures)]).splitlines()[2:]
    assert [row.split(" | ")[1] for row in rows] == ["second", "tenth"]


def test_a_page_gets_its_parts_and_keeps_the_rest(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "Before\n<!-- bench:targets -->\nold\n<!-- /bench -->\n<!-- bench:other -->\nkept\n<!-- /bench -->"
    )
    text = report.pages([reached(Figure.of([1.0], "calls", at_most=2.0))], [page, tmp_path / "none.md"])[page]
    assert "old" not in text
    assert "|  | calls | 1.00 × |  | ≤ 2.00 × | met |\n\n<!-- /bench -->" in text
    assert text.startswith("Before\n")
    assert text.endswith("<!-- bench:other -->\nkept\n<!-- /bench -->")


def test_highlights_are_taken_from_the_results_by_suite_and_words() -> None:
    wanted = Figure.of([0.25], "CPU of payouts.create over stripe on aiohttp, 64 in flight")
    table = report.highlights([reached(wanted), reached(wanted, name="decode")])
    assert table.splitlines()[2:] == ["| CPU of `payouts.create` (stripe's async client = 1) | 0.25 |  |"]


def test_a_chart_has_a_bar_for_each_figure_and_escapes_its_texts() -> None:
    figures = [
        Figure.of([0.6, 0.5, 0.7], "we", chart="cpu", label="payments-sdk"),
        Figure.of([2.0], "a & b", chart="cpu"),
        Figure.of([9.0], "no bar"),
    ]
    (drawn,) = report.images([reached(*figures)]).values()
    assert drawn.count("<rect") == len(charts.charted(figures)["cpu"]) == 2
    assert 'class="ours"' in drawn
    assert "CPU &lt;over&gt; aiohttp" in drawn
    assert "a &amp; b" in drawn


def test_pages_tables_and_charts_are_as_the_kept_results_have_them() -> None:
    suites = list(results.read().values())
    assert report.outdated(suites) == [], "run `python -m benchmarks.report`"


@pytest.mark.parametrize(
    ("runs", "quick", "title"),
    [
        (("1", "1"), False, "# What the last full run reached"),
        (("1", "2"), False, "# What the last run of each suite reached"),
        (("", ""), False, "# What the last run of each suite reached"),
        (("1", "1"), True, "# What the last run of each suite reached"),
    ],
)
def test_figures_of_several_runs_are_not_called_one_full_run(
    runs: tuple[str, str], quick: bool, title: str
) -> None:
    suites = [replace(reached(), began=began, quick=quick) for began in runs]
    assert report.written(suites)[results.HERE / "results.md"].splitlines()[0] == title


def test_a_run_gives_each_suite_the_moment_it_began(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    suite = SimpleNamespace(QUESTION="?", run=lambda peers, *, quick: [Figure.of([1.0], "calls")])
    monkeypatch.setitem(sys.modules, "benchmarks.decode", suite)
    monkeypatch.setattr("benchmarks.__main__.PROFILES", tmp_path)
    assert run_suite("decode", peers.Peers(), quick=True, began="then").began == "then"


@pytest.mark.parametrize("name", SUITES)
def test_every_suite_can_make_a_profile_of_itself(name: str) -> None:
    """Each has a target that can be missed."""
    assert callable(importlib.import_module(f"benchmarks.{name}").profile)


def test_a_suite_says_when_its_run_began() -> None:
    table = report.made([replace(reached(), began="2026-11-21 10:00:00 UTC")])["call_cost"]
    assert "A full run, begun 2026-11-21 10:00:00 UTC, " in table


def test_a_sliding_minute_counts_only_what_was_accepted() -> None:
    moments = [0.0, 1.0, 2.0, 59.0, 60.0, 60.5, 61.0]
    assert refused_sliding(moments, 2) == 3, "2.0, 59.0 and 60.5 find two others"
    assert refused_sliding(moments, 7) == 0


def test_a_fixed_minute_is_counted_wherever_it_begins() -> None:
    moments = [59.0, 59.5, 60.0, 60.5]
    assert refused_fixed(moments, 2, phases=1) == 0
    assert refused_fixed(moments, 2, phases=60) == 2


def test_the_share_of_a_limit_is_by_the_minute() -> None:
    assert share_used([0.0, 10.0, 29.0, 30.0], 6, 0.0, 30.0) == 1.0


def test_growth_beyond_the_tolerance_is_shown_and_what_is_new_is_not_judged() -> None:
    before = {"prepare": 1_000, "gate": 1_000, "create": 1_000, "blocking_create": 1_000}
    now = {"prepare": 1_031, "gate": 1_029, "create": 900, "blocking_create": 1_059, "page": 5}
    table, grown = instructions.judged(now, before)
    assert grown == ["prepare"]
    assert "| prepare | 1,031 | 1,000 | +3.1% | **grew** |" in table
    assert "| create | 900 | 1,000 | -10.0% | shrank: keep it with --update |" in table
    assert "| page | 5 | | | new |" in table


def test_counts_are_read_from_what_callgrind_wrote(tmp_path: Path) -> None:
    (tmp_path / "counted").write_text("desc: Trigger: Program termination\nsummary: 99\n")
    (tmp_path / "counted.1").write_text("desc: Trigger: Client Request: gate 1000\n\nsummary: 8740000\n")
    assert counts(tmp_path, "counted") == {("gate", 1_000): 8_740_000}


def test_peers_are_pinned_exactly_and_none_of_them_is_ours() -> None:
    pins = [line for line in peers.PINS.read_text().splitlines() if line and not line.startswith("#")]
    assert all(len(line.split("==")) == 2 for line in pins)
    assert (
        peers.pin("stripe") == next(line for line in pins if line.startswith("stripe==")).partition("==")[2]
    )
    with pytest.raises(KeyError):
        peers.pin("payments-sdk")
