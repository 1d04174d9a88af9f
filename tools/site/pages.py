"""The repository's pages as pages of the site."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable
from pathlib import Path
from textwrap import indent
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
LINK: Final = re.compile(r"\[(?P<text>[^\]\[]*)\]\((?P<path>[^)#:\s]+)(?P<anchor>#[^)\s]*)?\)")
FENCE: Final = re.compile(r"^([ ]*```.*?^[ ]*```)$", re.MULTILINE | re.DOTALL)
START: Final = re.compile(r"^(?:[*-]|\d+\.|\|) ?")

PROGRAM: Final = re.compile(r"^\[`[^`]+`\]\((?P<path>[^)]+\.py)\)$", re.MULTILINE)
"""A line that is a link to a program: the site's page shows the program below it."""

ASYNC, BLOCKING = "Async", "Blocking"
TWINS: Final = re.compile(
    rf"^\*\*{ASYNC}\*\*\n\n(```.*?^```)\n\n\*\*{BLOCKING}\*\*\n\n(```.*?^```)$", re.MULTILINE | re.DOTALL
)
"""A program of each package, one after the other: on the site one block with a switch."""

ELSEWHERE: Final = {
    "README.md": "overview.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "benchmarks/README.md": "benchmarks.md",
    "tests/README.md": "tests.md",
}
NAVIGATION: Final = {
    "Start": ["index.md", "install.md", "tutorial.md", "getting-started.md", "overview.md"],
    "Guides": [  # and every page of docs/ that is not named here
        *("shop.md", "nightly.md", "outbox.md"),
        *("listing.md", "errors.md", "webhooks.md", "bulk.md", "testing.md", "sandbox.md", "frameworks.md"),
        *("not-in-the-interface.md", "limits.md", "cancellation.md"),
        *("going-live.md", "guard.md", "environment.md", "observability.md", "engines.md"),
    ],
    "Examples": [],  # every page of examples/
    "Reference": [],  # one page for each subject
    "How it works": [
        *("interface.md", "architecture.md", "machines.md", "proof.md", "benchmarks.md"),
    ],
    "Project": ["support.md", "changelog.md", "security.md", "contributing.md", "tests.md"],
}


TITLES: Final = {"index.md": "By task", "overview.md": "The package"}
"""What the navigation calls a page whose own title says it at greater length."""


def sources() -> dict[str, str]:
    """{file of the repository: page of the site}"""
    found = {f"docs/{file.name}": file.name for file in sorted((ROOT / "docs").glob("*.md"))}
    examples = sorted((ROOT / "examples").glob("*/README.md"))
    return (
        found
        | ELSEWHERE
        | {f"examples/{file.parent.name}/README.md": f"examples/{file.parent.name}.md" for file in examples}
    )


def assets() -> list[str]:
    """The files that pages show or offer."""
    return [
        "docs/openapi.json",
        "docs/errors.json",
        *(f"docs/images/{file.name}" for file in (ROOT / "docs/images").iterdir()),
    ]


def navigation(reference: Iterable[str]) -> dict[str, list[str]]:
    """The site's navigation: sections, and their pages."""
    named = {page for pages in NAVIGATION.values() for page in pages}
    others = [page for page in sources().values() if page not in named]
    found = {
        "Guides": [page for page in others if not page.startswith("examples/")],
        "Examples": [page for page in others if page.startswith("examples/")],
        "Reference": list(reference),
    }
    return {section: [*pages, *found.get(section, ())] for section, pages in NAVIGATION.items()}


def page_of(file: str, repository: str) -> str:
    """A file of the repository as a page; `repository` is its address for links to code, or empty."""
    known = sources() | {name: name.removeprefix("docs/") for name in assets()}
    here = posixpath.dirname(known[file])

    def written(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(file), link["path"]))
        page = known.get(target) or known.get(f"{target}/README.md")
        if page is not None:
            return f"[{link['text']}]({posixpath.relpath(page, here or '.')}{link['anchor'] or ''})"
        if not (ROOT / target).exists():
            raise ValueError(f"{file}: {link[0]} leads nowhere")
        return f"[{link['text']}]({repository}/blob/main/{target})" if repository else link["text"]

    def shown(link: re.Match[str]) -> str:
        program = (ROOT / posixpath.dirname(file) / link["path"]).read_text(encoding="utf-8")
        return f"{link[0]}\n\n```python\n{program}```"

    text = PROGRAM.sub(shown, (ROOT / file).read_text(encoding="utf-8"))
    parts = FENCE.split(text)
    return "".join(
        part if part.lstrip().startswith("```") else LINK.sub(written, spaced(part)) for part in parts
    )


def spaced(text: str) -> str:
    """Markdown as the site's parser wants it: blank lines before lists and tables, lists indented by four."""
    lines: list[str] = []
    last = ""
    for line in text.split("\n"):
        bare = line.lstrip(" ")
        depth = len(line) - len(bare)
        follows_text = last and not last.startswith(" ") and not START.match(last)
        if START.match(line) and (follows_text or last.startswith("    ")):
            lines.append("")
        lines.append(" " * (4 * -(-depth // 3) if 0 < depth < 4 else depth) + bare if bare else line)
        last = line
    return "\n".join(lines)


def tab(title: str, content: str) -> str:
    """A tab of the site. The first kind begins a block, and all blocks change together."""
    return f'==={"!" * (title == ASYNC)} "{title}"\n\n{indent(content, "    ")}\n'


def with_tabs(text: str) -> str:
    """A page whose twin programs share a place."""
    return TWINS.sub(lambda found: f"{tab(ASYNC, found[1])}\n{tab(BLOCKING, found[2])}", text)
