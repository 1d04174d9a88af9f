"""The fact list and the interface document agree."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.facts_plugin import parse_facts

ROOT = Path(__file__).parents[1]
DOCUMENT = (ROOT / "docs" / "interface.md").read_text(encoding="utf-8")
HEADINGS = re.findall(r"^#{2,4} (.+)$", DOCUMENT, flags=re.MULTILINE)
FACTS = parse_facts((ROOT / "tests" / "facts.toml").read_text(encoding="utf-8"))
SECTIONS = {fact.section for fact in FACTS.values()}
NOT_TABLE_ROWS = {"field.exchange-rate.number-form", "field.failure.category-customer-error"}


def field_tables() -> dict[str, set[str]]:
    """The fields in the tables of "Resources and their fields", by the heading of their table."""
    resources = DOCUMENT.split("\n## Resources and their fields\n")[1].split("\n## ")[0]
    tables = {}
    for block in resources.split("\n### ")[1:]:
        heading, body = block.split("\n", 1)
        cells = re.findall(r"^\| (`[\w.]+`(?:, `[\w.]+`)*) \|", body, flags=re.MULTILINE)
        tables[heading] = set(re.findall(r"[\w.]+", " ".join(cells)))
    return {heading: names for heading, names in tables.items() if names}


def test_every_fact_stands_under_one_heading_of_the_document() -> None:
    assert {section: HEADINGS.count(section) for section in SECTIONS} == dict.fromkeys(SECTIONS, 1)


def test_every_fact_is_one_short_sentence() -> None:
    assert [fact.id for fact in FACTS.values() if len(fact.text) > 200 or not fact.text.endswith(".")] == []


def test_every_fact_says_something_of_its_own() -> None:
    """Ids cannot repeat, which the parser sees to; texts must not either."""
    texts = [fact.text for fact in FACTS.values()]
    assert len(set(texts)) == len(texts)


@pytest.mark.parametrize(("heading", "names"), field_tables().items(), ids=field_tables())
def test_every_row_of_a_field_table_is_a_fact(heading: str, names: set[str]) -> None:
    stated = {
        fact.id.split(".", 2)[2]
        for fact in FACTS.values()
        if fact.section == heading and fact.id.startswith("field.") and fact.id not in NOT_TABLE_ROWS
    }
    assert stated == names


def test_every_field_fact_has_its_table() -> None:
    assert {fact.section for fact in FACTS.values() if fact.id.startswith("field.")} == set(field_tables())


def test_every_endpoint_row_is_a_fact() -> None:
    rows = re.findall(r"^\| (GET|POST) \| `(/\S+)` \|", DOCUMENT, flags=re.MULTILINE)
    texts = [fact.text for fact in FACTS.values() if fact.id.startswith("endpoint.")]
    assert len(rows) == 13
    for method, path in rows:
        assert sum(text.startswith(f"`{method} {path}` ") for text in texts) == 1


def test_every_gap_has_its_row() -> None:
    letters = re.findall(r"^\| ([A-Z]{1,2}) \|", DOCUMENT, flags=re.MULTILINE)
    assert letters == [*map(chr, range(ord("A"), ord("Z") + 1)), "AA", "AB", "AC", "AD", "AE", "AF"]
