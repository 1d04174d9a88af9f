"""The site's pages: links between them hold, the navigation has each, and broken links are found."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools.site import llms
from tools.site.links import broken
from tools.site.pages import ROOT, assets, navigation, page_of, sources, spaced, with_tabs
from tools.site.reference import Reference, subject_of


@pytest.mark.parametrize("file", sources())
def test_every_link_of_a_page_leads_to_a_page_of_the_site(file: str) -> None:
    here = Path("/", sources()[file]).parent
    pages = {f"/{page}" for page in sources().values()} | {
        f"/{name.removeprefix('docs/')}" for name in assets()
    }
    prose = re.sub(r"^ *```.*?^ *```$", "", page_of(file, ""), flags=re.MULTILINE | re.DOTALL)
    links = re.findall(r"\]\(([^)#:\s]+)[^)]*\)", prose)
    assert {str((here / link).resolve()) for link in links} <= pages


@pytest.mark.parametrize("file", sources())
def test_every_column_of_a_table_has_a_name(file: str) -> None:
    """A screen reader says it with each cell."""
    heads = re.findall(
        r"^(\|.+\|) *\n\| ?:?---", (ROOT / file).read_text(encoding="utf-8"), flags=re.MULTILINE
    )
    assert not [head for head in heads if not all(cell.strip() for cell in head[1:-1].split("|"))]


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


def test_every_public_name_has_a_page_of_the_reference() -> None:
    reference = Reference()
    for module, names in reference.modules.items():
        for name in names:
            assert name.startswith("__") or subject_of(reference.canonical(module, name))
    with pytest.raises(LookupError, match=r"x\.unheard: no subject"):
        subject_of("x.unheard")


def test_a_line_that_is_a_link_to_a_program_shows_the_program() -> None:
    shop = page_of("docs/shop.md", "")
    for name in ("orders", "fastapi_shop", "flask_shop", "django_shop/shop/views", "django_shop/shop/tests"):
        program = (ROOT / f"examples/frameworks/{name}.py").read_text(encoding="utf-8")
        assert f"\n```python\n{program}```\n" in shop


def test_lists_and_tables_are_set_off_for_the_parser() -> None:
    assert spaced("text:\n* one\n  * two\n    more") == "text:\n\n* one\n    * two\n    more"
    assert spaced("* one\n\n    more\n* two") == "* one\n\n    more\n\n* two"
    assert spaced("text\n| a |\n|---|\n1. x\n   y") == "text\n\n| a |\n|---|\n1. x\n    y"


def test_programs_of_both_packages_share_a_place() -> None:
    one, other = "```python\nawait it\n```", "```python\nit\n```"
    text = f"**Async**\n\n{one}\n\n**Blocking**\n\n{other}\n\nMore"
    assert with_tabs(text) == (
        '===! "Async"\n\n    ```python\n    await it\n    ```\n\n'
        '=== "Blocking"\n\n    ```python\n    it\n    ```\n\n\nMore'
    )
    for file in sources():
        assert with_tabs(page_of(file, "")).count("**Blocking**") == 0, file


def test_pictures_are_few_and_light_and_those_that_move_can_stand_still() -> None:
    pictures = {file.name: file.stat().st_size for file in (ROOT / "docs/images").glob("*.webp")}
    assert len(pictures) <= 12
    assert sum(pictures.values()) <= 1.5 * 2**20
    page = (ROOT / "docs/index.md").read_text(encoding="utf-8")
    assert {*re.findall(r"images/([\w-]+\.webp)", page)} == {*pictures}
    for still in (name for name in pictures if name.endswith("-still.webp")):
        assert f'<source media="(prefers-reduced-motion: reduce)" srcset="images/{still}">' in page
        assert f'src="images/{still.replace("-still", "")}">' in page


def test_what_leads_nowhere_or_comes_from_elsewhere_is_found(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "index.html").write_text('<h1 id="here">B</h1>')
    (tmp_path / "index.html").write_text(
        '<a href="b/#here">1</a><a href="b/#gone">2</a><a href="c/">3</a><a href="https://x.test/">4</a>'
        '<link rel="stylesheet" href="https://cdn.test/a.css"><script src="//cdn.test/b.js"></script>'
        '<link rel="canonical" href="https://x.test/"><img src="data:image/png;base64,AAAA">'
    )
    assert sorted(broken(tmp_path)) == [
        "index.html: //cdn.test/b.js is fetched from elsewhere",
        "index.html: b/#gone has no such anchor",
        "index.html: c/ leads nowhere",
        "index.html: https://cdn.test/a.css is fetched from elsewhere",
    ]


def test_language_models_get_every_page_once(tmp_path: Path) -> None:
    shown = navigation(["reference/payments_async.md"])
    texts = {page: page_of(file, "") for file, page in sources().items()}
    llms.write(tmp_path, shown, texts)
    listed = (tmp_path / "llms.txt").read_text()
    assert listed.startswith("# payments-sdk\n\n> ")
    line = "- [Errors](errors.md): Every error says what happened to the money."
    assert line in listed.splitlines()
    assert [line for line in listed.splitlines() if line.startswith("- ") and "](examples/" in line]
    for page, text in texts.items():
        assert (tmp_path / page).read_text() == text
