"""What benchmarks say of their figures: the pure parts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks import instructions, peers, report
from benchmarks.__main__ import SUITES
from benchmarks.contenders.blocking_calls import WARM, Call, measured
from benchmarks.counting import counts
from benchmarks.figures import Figure, Reached, number, read, write
from benchmarks.limiter import refused


@pytest.mark.parametrize(
    ("values", "unit", "target", "met", "row"),
    [
        ([0.9, 0.5, 0.6], "×", {"at_most": 0.6}, True, "| calls | 0.60 × | 0.50 to 0.90 | ≤ 0.60 × | met |"),
        ([1.0], "×", {"at_most": 0.99}, False, "| calls | 1.00 × |  | ≤ 0.99 × | **missed** |"),
        ([1.0], "", {"at_least": 1.0}, True, "| calls | 1.00 |  | ≥ 1.00 | met |"),
        ([4.0], "MiB", {"at_least": 5_000.0}, False, "| calls | 4.00 MiB |  | ≥ 5,000 MiB | **missed** |"),
        ([1.0], "×", {}, None, "| calls | 1.00 × |  |  |  |"),
    ],
)
def test_the_median_of_the_rounds_is_judged(
    values: list[float], unit: str, target: dict[str, float], met: bool | None, row: str
) -> None:
    figure = Figure.of(values, "calls", unit, **target)
    assert (figure.met, figure.row()) == (met, row)


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (0.004, "0.004"), (0.654, "0.65"), (12.34, "12.3"), (104.4, "104"), (60_000.0, "60,000")],
)
def test_numbers_have_three_digits(value: float, text: str) -> None:
    assert number(value) == text


def test_results_come_back_as_they_were_kept(tmp_path: Path) -> None:
    suite = Reached("decode", [Figure.of([1.0, 2.0], "calls", "µs", at_most=3.0)], "2026-11-21: here")
    write([suite], tmp_path / "results.json")
    assert read(tmp_path / "results.json") == {"decode": suite}
    assert read(tmp_path / "none.json") == {}


def test_a_page_gets_its_parts_and_keeps_the_rest() -> None:
    page = "Before\n<!-- bench:decode -->\nold\n<!-- /bench -->\n<!-- bench:x -->\nkept\n<!-- /bench -->"
    made = report.parts({"decode": Reached("decode", [Figure.of([1.0], "calls")], "2026-11-21: here")})
    text = report.filled(page, made)
    assert "old" not in text
    assert "| calls | 1.00 × |  |  |  |\n\n2026-11-21: here\n\n<!-- /bench -->" in text
    assert text.endswith("<!-- bench:x -->\nkept\n<!-- /bench -->")


def test_the_kept_results_have_every_suite_and_headline_and_stand_in_the_pages() -> None:
    kept = read()
    assert tuple(kept) == SUITES
    known = {figure.what for suite in kept.values() for figure in suite.figures}
    assert report.HIGHLIGHTS.keys() <= known
    late = [file for file, text in report.pages().items() if file.read_text(encoding="utf-8") != text]
    assert late == [], "run `python -m benchmarks.report`"


def test_the_calls_of_a_round_are_shared_among_threads_that_have_one_each() -> None:
    made: list[list[int]] = []

    def new_call() -> Call:
        mine: list[int] = []
        made.append(mine)
        return lambda: mine.append(1)

    assert measured(new_call, threads=3, calls=30)["cpu"] > 0
    assert made == [[1] * (WARM + 10)] * 3


def test_a_call_that_fails_ends_the_round_with_its_failure() -> None:
    def call() -> None:
        raise OSError("no server")

    with pytest.raises(OSError, match="no server"):
        measured(lambda: call, threads=4, calls=8)


@pytest.mark.parametrize(("limit", "expected"), [(2, 3), (7, 0)])
def test_a_sliding_minute_counts_only_what_was_accepted(limit: int, expected: int) -> None:
    moments = [0.0, 1.0, 2.0, 59.0, 60.0, 60.5, 61.0]
    assert refused(moments, limit) == expected, "of 2: those at 2.0, 59.0 and 60.5 find two others"


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
    pins: dict[str, Any] = peers.pins()
    assert all(pins[name] for name in peers.NAMED)
    assert "payments-sdk" not in pins
