"""The tables of README.md and the guides say what the code does."""

from __future__ import annotations

import re

from cyclopts import Group

import payments_async
from payments_async import RateLimits
from tests.docs.pages import GUIDES, PAGES, PROSE, ROOT, commands, page, rows
from tests.support.payout_command import Exit


def test_the_limits_are_those_of_the_client() -> None:
    table = {
        row[2].strip("`"): row[1].replace(",", "") for row in rows(page("docs/limits.md")) if len(row) == 3
    }
    fields = {"writes", "reads", "diagnostics", "diagnostics_per_record", "refund_availability"}
    assert {name: int(table[name]) for name in fields} == {
        name: getattr(RateLimits(), name) for name in fields
    }


def test_the_table_of_environment_variables_is_that_of_the_code() -> None:
    package = ROOT / "payments_async"
    read = {
        name for path in package.rglob("*.py") for name in re.findall(r"\bPAYMENTS_[A-Z_]+", path.read_text())
    }
    listed = {row[0].strip("`") for row in rows(page("docs/environment.md"))}
    assert {name for name in listed if name.startswith("PAYMENTS_")} == read


def test_every_link_to_a_file_leads_somewhere() -> None:
    for name in (*PAGES, *PROSE):
        links = re.findall(r"\]\(([^)#]+)[^)]*\)", page(name))
        broken = [link for link in links if not ((ROOT / name).parent / link).exists()]
        assert not broken, (name, broken)


def test_every_name_the_pages_import_is_public() -> None:
    for name in GUIDES:
        for imported in re.findall(r"from payments_(?:a?sync) import (.+)", page(name)):
            assert set(imported.split(", ")) <= {*payments_async.__all__, "Payments"}, (name, imported)


def test_the_exit_codes_of_the_help_are_those_of_the_code() -> None:
    shown = re.findall(r"(\d+) (\w+)", str(commands().help_epilogue))
    named = {int(code): name for code, name in shown}
    known = {0: "done", 1: "refused", 2: "usage", 3: "outcome", 75: "stopped", 130: "interrupted", 141: "the"}
    assert named == known
    assert set(named) == {int(code) for code in Exit}


def test_the_guide_to_bulk_has_a_row_for_every_command_and_exit_code() -> None:
    guide = page("docs/bulk.md")
    named = {row[0].strip("`").split(" ")[0] for row in rows(guide) if len(row) == 4}
    operations = rows(guide.split("## Running it every month")[1])
    codes = {int(row[0]) for row in operations if row[0].isdigit()}
    payouts, one = commands()["payouts"], Group("One payout", sort_key=1)
    batch = {name for name in payouts if not name.startswith("-") and one not in payouts[name].group}
    assert "create" not in batch
    assert batch <= named
    assert codes == {int(code) for code in Exit}


def test_readme_is_short() -> None:
    assert len(page("README.md").splitlines()) <= 150
