"""llms.txt of the site, and each page as Markdown, for language models (llmstxt.org).

It lists the pages by section, each with its first sentence. The reference is listed only: its pages are made
of docstrings, which `help()` shows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from .pages import FENCE

SUMMARY: Final = (
    "A Python client for collecting payments and sending payouts, awaited (`payments_async`) or blocking "
    "(`payments_sync`). Every error says whether money may have moved."
)
NOTES: Final = (
    "`index.md` has programs by task, `not-in-the-interface.md` what no call does (refund, cancel, update). "
    "`errors.json` has each error with its effects on money and its remedy, `openapi.json` the service's "
    "interface. `payments mcp` lets an agent look into the simulated service: see `agents.md`."
)
_LINK: Final = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_NO_PROSE: Final = re.compile(r"[#|<>-]|\* |\d+\. | {4}|$")


def title(text: str) -> str:
    """The first heading of a page, without marks."""
    return next(line for line in text.splitlines() if line.startswith("# "))[2:].replace("`", "")


def first_sentence(text: str) -> str:
    """The first sentence of a page's prose, links as text; empty where there is none."""
    parts = (part.lstrip("\n") for part in FENCE.sub("", text).split("\n\n"))
    prose = " ".join(next((part for part in parts if not _NO_PROSE.match(part)), "").split())
    return re.split(r"(?<=[.:!?]) ", _LINK.sub(r"\1", prose), maxsplit=1)[0].rstrip(":")


def index(shown: Mapping[str, Sequence[str]], texts: Mapping[str, str]) -> str:
    """llms.txt: `shown` is the navigation, `texts` has the pages that are there as Markdown."""
    lines = ["# payments-sdk", "", f"> {SUMMARY}", "", NOTES]
    for section, pages in shown.items():
        lines += ["", f"## {section}", ""]
        for page in pages:
            if page not in texts:  # a page of the reference
                name = page.removesuffix(".md")
                lines.append(f"- [{name.removeprefix('reference/')}]({name}/index.html)")
                continue
            said = first_sentence(texts[page])
            lines.append(f"- [{title(texts[page])}]({page})" + (f": {said}" if said else ""))
    return "\n".join(lines) + "\n"


def write(site: Path, shown: Mapping[str, Sequence[str]], texts: Mapping[str, str]) -> None:
    """Write it, and the pages as Markdown, into the built site."""
    for name, text in {**texts, "llms.txt": index(shown, texts)}.items():
        file = site / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
