"""Text for people, wrapped at word ends; messages on stderr; readers that leave.

Needs no library, as the message about a missing one is wrapped, too.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import sys
import textwrap
from contextlib import suppress
from typing import Final, TextIO

from ..models._masking import clean_lines

WIDTH: Final = 80  # columns of a line of text at most; fewer on a narrower terminal
_LONGEST_WORD: Final = 200
_LEAST: Final = 24
"""Columns that a hanging indent leaves for words; a deeper one becomes `_SHALLOW`."""
_SHALLOW: Final = 2
_UNBROKEN: Final = re.compile(
    r"`[^`]{1,200}`"  # a command, to be copied
    r"|pip install \"[^\"]{1,200}\"|(?<!-)--[a-z-]{1,40} '[^']{1,200}'"
    r"|(?<![A-Z])[A-Z]{3} [0-9]"  # an amount
    r"|[0-9] (?:s|ms|min|h|%)(?![A-Za-z0-9])"  # a number and its unit
)
_GLUE: Final = "\x00"
"""For a space that is no place to break a line. Text that is shown has none."""


def text_width(width: int | None = None) -> int:
    """Columns for text on a terminal of this width, that of the process unless given."""
    return min(shutil.get_terminal_size((WIDTH, 24)).columns if width is None else width, WIDTH)


def wrapped(text: str, width: int, *, start: int = 0, hang: int = _SHALLOW) -> str:
    """Wrap a text at word ends. No word, command or amount is broken, however long it is.

    `start` is the column at which the text begins, `hang` the indent of the lines that follow. Further lines
    of the text itself keep their indent; what follows one that has any is indented by two more.
    """
    first, *rest = text.split("\n")
    lines = [_wrapped_line(first, width, start, hang)]
    for line in rest:
        indent = len(line) - len(line.lstrip(" "))
        lines += [_wrapped_line(line, width, 0, indent and indent + _SHALLOW)]
    return "\n".join(lines)


def _wrapped_line(line: str, width: int, start: int, hang: int) -> str:
    glued = _UNBROKEN.sub(lambda found: found[0].replace(" ", _GLUE), line)
    shown = textwrap.fill(
        glued,
        width,
        initial_indent=" " * start,
        subsequent_indent=" " * (hang if width - hang >= _LEAST else _SHALLOW),
        break_long_words=False,
        break_on_hyphens=False,
    )
    return shown[start:].replace(_GLUE, " ")


def brief(text: str) -> str:
    """Clean a text for a person, and cut each word that is longer than any of ours: an id, a status."""
    return re.sub(r"\S+", _cut, clean_lines(text))


def _cut(word: re.Match[str]) -> str:
    return word[0] if len(word[0]) <= _LONGEST_WORD else f"{word[0][:_LONGEST_WORD]}…"


def print_message(text: str, who: str = "payments: ") -> None:
    """Print a message on stderr: wrapped on a terminal; elsewhere as it is, as logs are read by the line.

    Control characters and keys in it are escaped. Without a reader there is nobody to complain to.
    """
    message = f"{who}{brief(text)}"
    if sys.stderr.isatty():
        message = wrapped(message, text_width(), hang=len(who))
    try:
        print(message, file=sys.stderr, flush=True)
    except BrokenPipeError:
        write_nowhere(sys.stderr)


def write_nowhere(stream: TextIO | None = None) -> None:
    """Discard what is buffered for a reader that has left, as `head` does, so that exit does not fail."""
    with suppress(io.UnsupportedOperation):  # a stream without a file has nothing to fail
        nowhere = os.open(os.devnull, os.O_WRONLY)
        try:
            os.dup2(nowhere, (stream or sys.stdout).fileno())
        finally:
            os.close(nowhere)
