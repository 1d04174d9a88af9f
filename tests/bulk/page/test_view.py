"""What the page of a batch shows in each state, its bar, its weight, and its file."""

from __future__ import annotations

import re
import textwrap

import attrs
import pytest

from payments_async.bulk import Outcome
from tests.support.batch_pages import BINDING, RUNNING, cause, causes, figures, page_of, row, states, words_of
from tests.support.snapshots import Snapshots

HEAVIEST = 40_000


@pytest.mark.parametrize("name", states())
def test_each_state_says_what_it_is(name: str, assert_snapshot: Snapshots) -> None:
    html = page_of(states()[name])
    assert_snapshot(textwrap.wrap(words_of(html), 110, break_on_hyphens=False))
    assert not re.search(r"\sstyle=|\son\w+=|\ssrc=|<link", html), "it loads nothing"


@pytest.mark.parametrize(("name", "tone"), [("rejected", "wait"), ("failed", "bad"), ("returned", "bad")])
def test_a_refusal_is_amber_and_a_failure_red(name: str, tone: str) -> None:
    assert f'<span class="pill {tone}">complete' in page_of(states()[name])


def test_a_page_with_all_it_needs_is_light_and_as_a_file_has_no_script() -> None:
    many = [row(number, failure_message="Why it was so. " * 20) for number in range(1, 51)]
    reasons = [cause(Outcome.FAILED, 90, *many[n : n + 3], reason="So. " * 99) for n in range(0, 48, 2)]
    now = figures(RUNNING, *reasons)
    assert len(page_of(now).encode()) <= HEAVIEST
    assert "360 rows with 4 more causes" in words_of(page_of(now))
    assert ("<script" in page_of(now), "<script" in page_of(now, has_script=False)) == (True, False)


def test_a_batch_in_a_database_has_its_commands_without_the_password_and_a_hash_is_cut_short() -> None:
    now = states()["stopped"]
    named_by_input = attrs.evolve(now.batch, binding=attrs.evolve(BINDING, batch_id="ab" * 32))
    database = attrs.evolve(now.ledger, text="postgresql://me:secret@host/db", batch_id="ab" * 32)
    words = words_of(page_of(attrs.evolve(now, ledger=database, batch=named_by_input)))
    assert f"payments payouts watch 'postgresql://me:***@host/db' --page --batch-id {'ab' * 32}" in words
    assert "secret" not in words
    assert words.startswith("abababababab… stopped")


def test_a_certificate_of_an_earlier_state_says_so() -> None:
    now = states()["complete"]
    newer = attrs.evolve(states()["rejected"], batch=now.batch)
    told = "The figures above are newer than this certificate."
    assert (told in page_of(now), told in page_of(newer)) == (False, True)


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
    assert words in words_of(page_of(figures(rows)))


def test_what_a_service_or_an_operator_wrote_is_text() -> None:
    evil = row(3, failure_message="<script>alert(1)</script>", row_key="<b>", reference="<i>" * 9)
    html = page_of(figures(RUNNING, cause(evil.outcome, 1, evil)))
    assert not [text for text in ("<script>alert", "<b>", "<i>") if text in html]
    assert "&lt;script&gt;" in html
    assert "&lt;b&gt;" in html


def test_what_needs_a_person_comes_by_urgency_with_its_meaning(assert_snapshot: Snapshots) -> None:
    now = figures({"arrived": 9}, *causes(), in_excess=1, moved_in_conflict=1)
    assert_snapshot(re.findall(r"<h2>(.*?)</h2>", page_of(now)))


def test_the_bar_shows_small_parts_and_its_parts_fill_it() -> None:
    now = figures({"arrived": 99_999, "failed": 1})
    html, parts = page_of(now), r'<rect class="\w+" x="([\d.]+)%" width="([\d.]+)%"'
    assert re.findall(r'id="stack-words">(.*?)<', html) == ["99,999 arrived, 1 failed"]
    assert re.findall(parts, html) == [("0.0", "99.21"), ("99.21", "0.79")]
    none = attrs.evolve(now.report, counts=dict.fromkeys(now.report.counts, 0))
    assert "<rect" not in page_of(attrs.evolve(now, report=none))
