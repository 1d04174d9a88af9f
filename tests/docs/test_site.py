"""The site's pages: links between them hold, the navigation has each, and broken links are found."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools.site.links import broken
from tools.site.pages import assets, navigation, page_of, sources, spaced


@pytest.mark.parametrize("file", sources())
def test_every_link_of_a_page_leads_to_a_page_of_the_site(file: str) -> None:
    here = Path("/", sources()[file]).parent
    pages = {f"/{page}" for page in sources().values()} | {
        f"/{name.removeprefix('docs/')}" for name in assets()
    }
    prose = re.sub(r"^ *```.*?^ *```$", "", page_of(file, ""), flags=re.MULTILINE | re.DOTALL)
    links = re.findall(r"\]\(([^)#:\s]+)[^)]*\)", prose)
    assert {str((here / link).resolve()) for link in links} <= pages


def test_links_to_code_become_text_or_absolute() -> None:
    assert "](../" not in page_of("docs/getting-started.md", "")
    address = "https://code.test/sdk"
    assert f"](../{address}" not in page_of("docs/getting-started.md", address)
    assert f"[`payments_async/errors.py`]({address}/blob/main/payments_async/errors.py)" in page_of(
        "docs/getting-started.md", address
    )


def test_the_navigation_has_every_page_once() -> None:
    shown = [page for pages in navigation(["reference/x.md"]).values() for page in pages]
    assert sorted(shown) == sorted([*sources().values(), "reference/x.md"])


def test_lists_and_tables_are_set_off_for_the_parser() -> None:
    assert spaced("text:\n* one\n  * two\n    more") == "text:\n\n* one\n    * two\n    more"
    assert spaced("* one\n\n    more\n* two") == "* one\n\n    more\n\n* two"
    assert spaced("text\n| a |\n|---|\n1. x\n   y") == "text\n\n| a |\n|---|\n1. x\n    y"


def test_broken_links_and_anchors_are_found(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "index.html").write_text('<h1 id="here">B</h1>')
    (tmp_path / "index.html").write_text(
        '<a href="b/#here">1</a><a href="b/#gone">2</a><a href="c/">3</a><a href="https://x.test/">4</a>'
    )
    assert [*broken(tmp_path)] == ["index.html: b/#gone has no such anchor", "index.html: c/ leads nowhere"]
