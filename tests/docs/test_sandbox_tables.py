"""The guide to the sandbox says what the code does; commands and headings that pages name exist."""

from __future__ import annotations

import json
import re

import pytest

from payments_async.sandbox import Sandbox
from payments_async.sandbox._checkout.messages import _MESSAGES
from payments_async.sandbox._checkout.method_catalogue import METHODS
from payments_async.sandbox._checkout.simulated_bank import SIMULATED_PAGES
from payments_async.sandbox._common import scenario_words
from payments_async.sandbox._common.profiles import PROFILES
from payments_async.sandbox._common.scenario_words import _HOOKS, MAGIC
from payments_async.sandbox._records.emit_webhook import ATTEMPT_EVENTS, PAYMENT_EVENTS, PAYOUT_EVENTS
from payments_async.sandbox._records.payout_json import FAILURE_CATEGORIES, failure_for
from payments_async.sandbox._webhooks.retry_schedule import TRY_TIMES
from tests.docs.pages import (
    PAGES,
    ROOT,
    commands,
    first_cells,
    options_named,
    options_of,
    page,
    rows,
    section,
    slug,
)

GUIDE = "docs/sandbox.md"


@pytest.mark.parametrize(
    ("name", "commands", "others"),
    [
        ("README.md", "demo payouts sandbox webhooks", ""),
        ("docs/bulk.md", "payouts doctor", "--help"),
        ("docs/getting-started.md", "api demo payouts sandbox webhooks", ""),
        ("docs/testing.md", "sandbox webhooks", "--full-trace"),
        ("docs/webhooks.md", "demo payouts sandbox webhooks", ""),
    ],
)
def test_every_option_that_a_page_names_is_one(name: str, commands: str, others: str) -> None:
    """Of our commands, or of pytest, of uv."""
    known = {option for command in commands.split() for option in options_of(command)}
    assert options_named(page(name)) <= known | {*others.split()}


@pytest.mark.parametrize(
    ("name", "commands"),
    [(GUIDE, "sandbox webhooks"), ("docs/observability.md", "doctor"), ("docs/agents.md", "mcp")],
)
def test_a_guide_names_every_option_of_its_commands_and_no_other(name: str, commands: str) -> None:
    assert options_named(page(name)) == {option for each in commands.split() for option in options_of(each)}


def test_every_command_that_a_page_names_is_one() -> None:
    app = commands()
    for name in PAGES:
        for group, word in re.findall(
            r"[`$] ?payments (sandbox|webhooks|payouts|demo)(?: ([a-z][a-z-]*))?", page(name)
        ):
            assert not word or word in list(app[group]), (name, group, word)


def test_the_table_of_the_inspector_is_that_of_its_pages() -> None:
    from payments_async.sandbox._inspector.site import PAGES as SHOWN

    listed = [cell.strip("*") for cell in first_cells(section(GUIDE, "The inspector"))]
    assert sorted(listed) == sorted(shown.title for shown in SHOWN)


def test_the_tables_of_the_checkout_are_those_of_its_methods_and_states() -> None:
    text = section(GUIDE, "The hosted checkout")
    listed = [(row[0], row[1].strip("`")) for row in rows(text) if len(row) == 3]
    assert listed[2:] == [(method.label, method.action) for method in METHODS]
    states = {name for cell in first_cells(text) for name in re.findall(r"`(\w+)`", cell)}
    assert states == {"open", *_MESSAGES, "action"}
    for part in re.findall(r"/checkout/\{id\}/(\w+)", text):
        assert part in SIMULATED_PAGES, part


def test_the_table_of_webhook_words_is_the_vocabulary_with_its_magic_numbers() -> None:
    listed = [row for row in rows(section(GUIDE, "Webhooks")) if len(row) == 3][2:]
    words = {row[0].strip("`").split("`")[0].split(":")[0]: row[1].strip("`") for row in listed}
    assert set(words) == set(_HOOKS)
    magic = {f"9900{ending}": hook.kind for ending, scenario in MAGIC.items() for hook in scenario.hooks}
    assert {number: word for word, number in words.items() if number} == magic


PAYOUT = {
    "amount": 10,
    "currency": "GHS",
    "method": "mobile_money",
    "reference": "r-1",
    "instrument": {"type": "phone", "phone_number": "+233200000001", "country": "GH"},
}


FAULT_ROWS = [row for row in rows(page("docs/testing.md")) if row[-1] in ("no", "**yes**")]


@pytest.mark.parametrize(("word", "carried_out"), [(row[0].strip("`"), row[2]) for row in FAULT_ROWS])
def test_each_fault_is_carried_out_or_not_as_the_table_says(word: str, carried_out: str) -> None:
    sandbox = Sandbox()
    sandbox.on("payouts.create").respond(word)
    headers = {"Authorization": f"Bearer {sandbox.api_key}", "Content-Type": "application/json"}
    sandbox.handle("POST", "/v1/payouts", headers, json.dumps(PAYOUT).encode())
    assert not sandbox.unused_rules
    assert bool(sandbox.books.payouts()) is (carried_out == "**yes**")


def test_the_guide_names_every_word_of_the_vocabulary() -> None:
    faults = {row[0].strip("`").split(":")[0] for row in FAULT_ROWS}
    assert faults == set(scenario_words._FAULTS)
    shown = page("docs/testing.md").split("## Outcomes")[1].split("## Without")[0]
    for word in (*scenario_words._OUTCOMES, *scenario_words._TIMINGS):
        assert re.search(rf"`{word}[:=`]", shown), word


def test_the_table_of_magic_endings_is_the_vocabulary_in_its_order() -> None:
    cells = [cell for row in rows(section("docs/testing.md", "Without the handle"))[2:] for cell in row]
    listed = {cells[at].strip("`"): cells[at + 1].strip("`") for at in range(0, len(cells), 2) if cells[at]}
    words = {**scenario_words._RECORD_WORDS, **scenario_words._REQUEST_WORDS, **scenario_words._HOOK_WORDS}
    assert listed == {f"9900{ending}": word for ending, word in words.items()}


def test_the_table_of_failures_is_that_of_the_sandbox() -> None:
    listed = {
        row[0].strip("`"): row[1].strip("`") for row in rows(section("docs/testing.md", "Outcomes"))[2:]
    }
    other = listed.popitem()
    assert listed == FAILURE_CATEGORIES
    for code in ("CUSTOMER_DECLINED", "ANYTHING_ELSE"):
        assert failure_for(code).category == other[1]
    assert "CUSTOMER_DECLINED" in other[0]


@pytest.mark.parametrize("name", PAGES)
def test_every_failure_that_a_page_asks_for_is_a_code_and_no_category(name: str) -> None:
    categories = {*FAILURE_CATEGORIES.values(), "CUSTOMER_ERROR"} - set(FAILURE_CATEGORIES)
    assert not set(re.findall(r"fail:([A-Z_]{6,})", page(name))) & categories


def test_the_guide_names_every_event_of_a_delivery_and_when_it_is_tried() -> None:
    text = section(GUIDE, "Webhooks")
    assert set(re.findall(r"`(pay\w+(?:\.\w+)+)`", text)) == {
        *PAYOUT_EVENTS,
        *PAYMENT_EVENTS,
        *ATTEMPT_EVENTS,
    }
    assert "30 s, 2 min, 10 min and 1 h of" in " ".join(text.split())
    assert TRY_TIMES == (0, 30, 120, 600, 3600), "the sentence above says so"


def test_the_table_of_profiles_has_every_profile() -> None:
    assert [cell.strip("`") for cell in first_cells(section("docs/testing.md", "Profiles"))] == list(PROFILES)


@pytest.mark.parametrize("name", PAGES)
def test_every_link_to_a_heading_finds_it(name: str) -> None:
    for link, anchor in re.findall(r"\]\(([^)#:]*)#([^)]+)\)", page(name)):
        target = (ROOT / name).parent / link if link else ROOT / name
        headings = re.findall(r"^#+ (.+)$", target.read_text(encoding="utf-8"), re.MULTILINE)
        assert anchor in {slug(heading) for heading in headings}, (name, link, anchor)
