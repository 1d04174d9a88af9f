"""What the page of a batch shows in each state; its chart, in figures and in words; its weight."""

from __future__ import annotations

import re
import textwrap

import attrs
import pytest

from payments_async.bulk import Activity, Outcome, Series
from payments_async.bulk._page import chart, view
from payments_async.bulk._page.feed import PageFigures
from payments_async.bulk._page.site import FILES
from payments_async.bulk._texts.ledger_address import LedgerAddress
from tests.support.batch_pages import (
    BEGAN,
    BINDING,
    RUNNING,
    SERIES,
    cause,
    causes,
    figures,
    in_doubt,
    row,
    states,
    turned,
    words_of,
)
from tests.support.snapshots import Snapshots

HEAVIEST = 60_000


def html_of(now: PageFigures) -> str:
    """The page's HTML."""
    return FILES.render("batch.html", view.batch_context(now))


def lines_of(html: str) -> list[str]:
    """Its words, wrapped."""
    return textwrap.wrap(words_of(html), 110, break_on_hyphens=False)


@pytest.mark.parametrize("name", states())
def test_each_state_says_what_it_is(name: str, assert_snapshot: Snapshots) -> None:
    now = states()[name]
    html = html_of(now)
    assert_snapshot(lines_of(html))
    assert ("http-equiv" in html) is now.is_working, "without JavaScript it loads itself anew"
    assert not re.search(r"\sstyle=|\son\w+=", html)


@pytest.mark.parametrize(("name", "tone"), [("rejected", "wait"), ("failed", "bad"), ("returned", "bad")])
def test_a_refusal_is_amber_and_a_failure_red(name: str, tone: str) -> None:
    assert f'<span class="pill {tone}">complete' in html_of(states()[name])


ROWS = {
    "failed": row(41),
    "elsewhere": row(41, base_url="https://pay.example/v1"),
    "without a key": row(41, row_key="***", reference="***"),
    "in doubt": in_doubt(17),
    "unsent": attrs.evolve(
        in_doubt(7), outcome=Outcome.NOT_STARTED, sends=0, first_sent=None, last_sent=None, decided_at=None
    ),
    "turned": turned(61),
    "made new": row(41, generation=2),
}


@pytest.mark.parametrize("name", ROWS)
def test_a_row_has_its_facts_and_its_statuses(name: str, assert_snapshot: Snapshots) -> None:
    html = FILES.render("row.html", view.row_context(states()["running"], ROWS[name]))
    assert_snapshot(lines_of(html))
    has_inspector = "http://127.0.0.1:20999/_sandbox/payouts" in html
    assert has_inspector is (name not in ("elsewhere", "unsent", "in doubt"))


def test_every_page_with_its_assets_is_light() -> None:
    assets = sum(map(len, FILES.assets.values()))
    many = [row(number, failure_message="Why it was so. " * 20) for number in range(1, 51)]
    reasons = [cause(Outcome.FAILED, 90, *many[n : n + 3], reason="So. " * 99) for n in range(0, 48, 2)]
    full = figures(RUNNING, *reasons, series=Series(BEGAN, 60.0, tuple(range(240)), tuple(range(240)), 9.0))
    page = FILES.render("row.html", view.row_context(full, row(41)))
    for html in (html_of(full), page):
        assert len(html.encode()) + assets <= HEAVIEST, (len(html), assets)
    assert "360 rows with 4 more causes" in words_of(html_of(full))


def test_a_batch_in_a_database_has_its_commands_without_the_password_and_a_hash_is_cut_short() -> None:
    named_by_input = attrs.evolve(
        states()["stopped"].batch, binding=attrs.evolve(BINDING, batch_id="ab" * 32)
    )
    database = LedgerAddress("postgresql://me:secret@host/db", "ab" * 32)
    words = words_of(html_of(attrs.evolve(states()["stopped"], ledger=database, batch=named_by_input)))
    assert f"payments payouts watch 'postgresql://me:***@host/db' --page --batch-id {'ab' * 32}" in words
    assert "secret" not in words
    assert "Skip to content abababababab… stopped" in words


def test_a_certificate_of_an_earlier_state_says_so() -> None:
    now = states()["complete"]
    newer = attrs.evolve(states()["rejected"], batch=now.batch)
    told = "The figures above are newer than this certificate."
    assert (told in html_of(now), told in html_of(newer)) == (False, True)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ({"cancelled": 8}, "GHS 0.00 created of GHS 4,009.60 asked"),
        ({"arrived": 3, "not_final": 1}, "GHS 1,503.60 arrived of GHS 2,004.80 asked"),
        ({"not_final": 4}, "GHS 2,004.80 created of GHS 2,004.80 asked"),
        ({"arrived": 3, "not_started": 1}, "GHS 1,503.60 created of GHS 2,004.80 asked"),
    ],
)
def test_a_page_leads_with_what_arrived_once_every_row_is_decided(rows: dict[str, int], words: str) -> None:
    assert words in words_of(html_of(figures(rows)))


def test_what_a_service_or_an_operator_wrote_is_text() -> None:
    evil = row(3, failure_message="<script>alert(1)</script>", row_key="<b>", reference="<i>" * 9)
    now = figures(RUNNING, cause(evil.outcome, 1, evil))
    page = html_of(now) + FILES.render("row.html", view.row_context(now, evil))
    assert not [text for text in ("<script>", "<b>", "<i>") if text in page]
    assert "&lt;script&gt;" in page
    assert "&lt;b&gt;" in page


def test_what_needs_a_person_comes_by_urgency_with_its_meaning(assert_snapshot: Snapshots) -> None:
    now = figures({"arrived": 9}, *causes(), in_excess=1, moved_in_conflict=1)
    assert_snapshot(re.findall(r"<h3>(.*?)</h3>", html_of(now)))


def test_a_bar_shows_small_parts_and_its_parts_fill_it() -> None:
    parts = chart.stacked([("ok", "arrived", 99_999), ("bad", "failed", 1), ("idle", "not started", 0)])
    assert [(part.word, part.width) for part in parts] == [("arrived", 99.21), ("failed", 0.79)]
    assert chart.stacked([("ok", "arrived", 0)]) == []


def test_the_chart_shows_rows_a_second_and_those_that_were_refused() -> None:
    assert chart.speed_chart(Series()) is None
    drawn = chart.speed_chart(Series(BEGAN, 2.0, (100, 100, 20), (0, 4, 0), 1.0))
    assert drawn == chart.SpeedChart(
        created="M0 100V7.544H333.33V3.846H666.67V81.51H1000V100Z",
        others="M0 100V100H333.33V96.3H666.67V100H1000V100Z",
        ticks=[(110.2, "20"), (58.4, "40")],
        begin="21:19:26",
        end="21:19:32",
        sentence="From 21:19:26 to 21:19:32 UTC: 224 rows decided, 52.0 a second at most.",
    )
    for top, texts in ((0.9, "0.5"), (1.0, "0.5 1"), (300.0, "100 200 300")):
        found = chart.speed_chart(Series(BEGAN, 1.0, (top,), (0,), 1.0))  # type: ignore[arg-type] # any number
        assert found is not None
        assert " ".join(text for _, text in found.ticks) == texts
    days = chart.speed_chart(Series(BEGAN, 3600.0, (1,) * 9, (0,) * 9, 1.0))
    assert days is not None
    assert (days.begin, days.end) == ("2026-06-30 21:19:26", "2026-07-01 06:19:26")


def test_figures_differ_by_what_they_show_and_not_by_their_time() -> None:
    assert (
        figures({"arrived": 1}, at=1.0) == figures({"arrived": 1}, at=2.0) != figures({"arrived": 2}, at=2.0)
    )
    assert figures({"arrived": 1}, doing=Activity(doing="paying")) != figures({"arrived": 1})
    assert figures({"arrived": 1}, series=attrs.evolve(SERIES, pace=1.0)) != figures({"arrived": 1})
