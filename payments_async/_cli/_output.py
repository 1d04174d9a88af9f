"""The output of commands: for people, or as JSON lines for programs.

Each step has a sentence for people and facts for programs; each `Show` takes its half. Foreign text is
cleaned here, where it is printed (`models/_masking.py`), and sentences are wrapped; JSON escapes by itself.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter
from rich.console import Console, RenderableType
from rich.text import Text

from ..models._masking import clean
from ._text import brief, text_width, wrapped

if TYPE_CHECKING:
    FileName = str
else:
    FileName = str | Path  # always a text: that it may be a path has shells complete files
_FLAG = Parameter(negative="", show_default=False)
Flag = Annotated[bool, _FLAG]  # a flag that can only be set

Insecure = Annotated[
    bool, _FLAG, Parameter(help="Use a database on another host without a checked certificate.")
]

JsonFlag = Annotated[bool, _FLAG, Parameter(help="One JSON object instead of text.")]
"""The `--json` flag of a command with one result."""

JsonLinesFlag = Annotated[bool, _FLAG, Parameter(help="JSON lines instead of text.")]
"""The `--json` flag of a command that lists, streams or shows its progress."""

INDENT = 11  # columns that a step's name takes


class OutputConsole(Console):
    """A console that calls `on_end` when its reader has left, or raises BrokenPipeError. Rich's own exits.

    With NO_COLOR its text is plain; rich would still print it bold and dim.
    """

    def __init__(self, on_end: Callable[[], object] | None = None, **options: Any) -> None:
        if os.environ.get("NO_COLOR"):
            options["color_system"] = None
        super().__init__(**options)
        self._on_end = on_end

    def on_broken_pipe(self) -> None:
        """Call `on_end`; without it, raise the error."""
        if self._on_end is None:
            raise BrokenPipeError
        self._on_end()


class Show:
    """Shows a command's steps to people: colours on a terminal, plain lines anywhere else."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or OutputConsole(highlight=False)

    def heading(self, title: str, note: str = "") -> None:
        """Begin a section about `title` with a bold line; `note` is for people only."""
        self.render("")
        shown = clean(title)
        about = wrapped(f"  {clean(note)}", self._width, start=len(shown)) if note else ""
        self.render(Text.assemble((shown, "bold"), (about, "dim")), soft_wrap=True)

    def step(
        self, name: str, text: str, *, good: bool | None = True, wrap: bool = True, **facts: object
    ) -> None:
        """Show a step: `text` for people, as a line; `facts` for programs."""
        self.line(name, text, good=good, wrap=wrap)

    def line(self, name: str, text: str, *, good: bool | None = None, wrap: bool = True) -> None:
        """Show `text` after a tick, a cross or, where `good` is None, a dot; for people only.

        Without `wrap` the text is one that is copied, such as a path or a command: it stays on one line, the
        next one where it has no room beside the name.
        """
        mark = ("·", "") if good is None else ("✓", "green") if good else ("✗", "bold red")
        label, words = f" {name:<{INDENT - 1}} ", clean(text)
        if wrap:
            words = wrapped(brief(words), self._width, start=len(label) + 3, hang=INDENT + 4)
        elif len(label) + 3 + len(words) > self._width:
            words = f"\n  {words}"
        style = "bold red" if good is False else ""
        self.render(Text.assemble("  ", mark, (label, "dim"), (words, style)), soft_wrap=True)

    def paragraph(self, text: str) -> None:
        """Show a sentence or more, for people only."""
        words = wrapped(f"  {brief(clean(text))}", self._width, hang=4)
        self.render(Text(words), soft_wrap=True)

    def render(self, renderable: RenderableType, *, soft_wrap: bool = False) -> None:
        """Show a text or a table, for people only."""
        self._console.print(renderable, soft_wrap=soft_wrap)

    @property
    def _width(self) -> int:
        return text_width(self._console.width)


class JsonLines(Show):
    """For programs: one JSON object a line. Amounts and dates are texts, so that they stay exact.

    `about` is in each line, until a heading names something else. When the reader of the lines has left,
    `on_end` is called; without it, BrokenPipeError is raised.
    """

    def __init__(self, about: str = "", on_end: Callable[[], object] | None = None) -> None:
        super().__init__()
        self._about, self._on_end = about, on_end

    def heading(self, title: str, note: str = "") -> None:
        """The `about` of the lines that follow."""
        self._about = title

    def step(
        self, name: str, text: str, *, good: bool | None = True, wrap: bool = True, **facts: object
    ) -> None:
        line = {"about": self._about, "step": name.lower(), "ok": good is not False, **facts}
        try:
            sys.stdout.write(json.dumps(line, default=str) + "\n")
            sys.stdout.flush()
        except BrokenPipeError:
            if self._on_end is None:
                raise
            self._on_end()

    def render(self, renderable: RenderableType, *, soft_wrap: bool = False) -> None:
        """Nothing: it was a fact of a step."""


def show_for(*, as_json: bool) -> Show:
    return JsonLines() if as_json else Show()
