"""README.md and the guides as tables, sections and options, to be held against the code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from cyclopts import App

ROOT = Path(__file__).parents[2]
_GUIDES = [
    "bulk",
    "cancellation",
    "errors",
    "getting-started",
    "going-live",
    "guard",
    "index",
    "limits",
    "listing",
    "nightly",
    "not-in-the-interface",
    "observability",
    "outbox",
    "sandbox",
    "shop",
    "testing",
    "tutorial",
    "webhooks",
]
_OTHERS = ("agents", "architecture", "environment", "install", "support")
GUIDES = ("README.md", *(f"docs/{name}.md" for name in _GUIDES))
PROSE = ("CONTRIBUTING.md", "SECURITY.md", "tests/README.md")
"""For those who work on the project."""
PAGES = (*GUIDES, *(f"docs/{name}.md" for name in _OTHERS))


def page(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def rows(text: str) -> list[list[str]]:
    """The cells of every table row of a page."""
    return [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith("|")
    ]


def section(name: str, heading: str) -> str:
    """A page from a second-level heading to the next."""
    return re.split(r"^## ", page(name).split(f"\n## {heading}\n")[1], flags=re.MULTILINE)[0]


def first_cells(text: str) -> list[str]:
    """The first cell of each row below a table's head."""
    cells = [row[0] for row in rows(text)]
    heads = [number for number, cell in enumerate(cells) if set(cell) == {"-"}]
    return [cell for number, cell in enumerate(cells) if number not in heads and number + 1 not in heads]


def slug(heading: str) -> str:
    """A heading as the anchor that it gets on a page of Markdown."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def commands() -> App:
    from payments_async._cli._app import make_app

    return make_app()


def options_of(command: str) -> set[str]:
    """The long options of a command of `payments` and of those below it, as its parser knows them."""

    def walk(app: App) -> Iterator[str]:
        if app.default_command is not None:
            for argument in app.assemble_argument_collection():
                yield from argument.names
        for name in app:
            if not name.startswith("-"):
                yield from walk(app[name])

    return {name for name in walk(commands()[command]) if name.startswith("--")}


def options_named(text: str) -> set[str]:
    return set(re.findall(r"(?<=[\s`])--[a-z][a-z-]*", text))
