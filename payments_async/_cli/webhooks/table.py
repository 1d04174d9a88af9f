"""Deliveries as an aligned table, a line each: as many columns as the terminal has room for."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

import attrs
from rich.cells import set_cell_size
from rich.text import Text

from ..._runtime import SYSTEM
from ...bulk._texts.quantities import took_text
from .._text import text_width, wrapped
from .payload import ShownDelivery, quoted

_ORDER: Final = ("Time", "Event", "Record", "Amount", "Status", "Reference", "Delivery", "Result", "Took")
_ALWAYS: Final = {"Time": 8, "Event": 17, "Result": 8}
_LONGEST_EVENT: Final = 31
_SHORT_RECORD: Final = 10
"""What a long name of an event leaves to the record beside it."""
_MORE: Final = (
    ("Took", 7, 7),
    ("Record", 12, 24),
    ("Delivery", 11, 11),
    ("Amount", 16, 16),
    ("Status", 10, 18),
    ("Reference", 12, 24),
)
"""Columns that are shown where there is room, the most important first: name, least and greatest width."""
_STYLES: Final = {"completed": "green", "failed": "bold red"}
_MARK: Final = 4
_GAP: Final = 2


@attrs.frozen
class DeliveryResult:
    """What became of a delivery here."""

    status: int
    """The status that its sender was answered."""
    problem: str
    """Why it failed; empty if it did not."""
    seconds: float
    """From its arrival to the answer."""
    is_forwarded: bool


def column_widths(width: int) -> dict[str, int]:
    """The columns that fit, in their order, with their widths."""
    wide = dict(_ALWAYS)
    left = width - _MARK - sum(wide.values()) - _GAP * (len(wide) - 1)
    for name, least, most in _MORE:
        room = min(most, left - _GAP)
        if room >= least:
            wide[name] = room
            left -= room + _GAP
    wide["Event"] = min(wide["Event"] + max(left, 0), _LONGEST_EVENT)
    return {name: wide[name] for name in _ORDER if name in wide}


def header(widths: Mapping[str, int]) -> Text:
    """The names of the columns."""
    return Text(" " * _MARK + _line({name: name for name in widths}, widths), "bold")


def row(delivery: ShownDelivery, name: str, result: DeliveryResult, widths: Mapping[str, int]) -> Text:
    """A delivery, and the colour of its record's status; if it was not accepted in red, and below it why."""
    answer = str(result.status) if result.is_forwarded else "received"
    cells = {
        "Time": f"{SYSTEM.now().astimezone():%H:%M:%S}",
        "Event": quoted(delivery.event),
        "Record": quoted(delivery.record),
        "Amount": delivery.money,
        "Status": quoted(delivery.status),
        "Reference": quoted(delivery.reference),
        "Delivery": name,
        "Result": answer,
        "Took": took_text(result.seconds),
    }
    line = _line(cells, _with_whole_event(cells["Event"], widths))
    if not result.problem:
        shown = Text(f"  · {line}")
        shown.highlight_words([cells["Event"]], _STYLES.get(delivery.event.rpartition(".")[2], ""))
        return shown
    start = _MARK + widths["Time"] + _GAP
    why = wrapped(f"{'':{start}}{result.problem}", text_width(), hang=start)
    return Text(f"  ✗ {line}\n{why}", "red")


def _with_whole_event(event: str, widths: Mapping[str, int]) -> Mapping[str, int]:
    """The widths of a line: a long name of an event takes room of the record, unless it is no name."""
    over = min(len(event) - widths["Event"], widths.get("Record", 0) - _SHORT_RECORD)
    if over <= 0 or event.startswith('"'):
        return widths
    return {**widths, "Event": widths["Event"] + over, "Record": widths["Record"] - over}


def answer_text(place: str, status: int) -> str:
    """What an application answered, with the status in words if it is a usual one."""
    words = f" {HTTPStatus(status).phrase}" if status in set(HTTPStatus) else ""
    return f"{place} answered {status}{words}"


def _line(cells: Mapping[str, str], widths: Mapping[str, int]) -> str:
    shown = []
    for name, width in widths.items():
        cell = _shortened(cells[name], width)
        shown.append(f"{cell:>{width}}" if name == "Took" else set_cell_size(cell, width))
    return (" " * _GAP).join(shown).rstrip()


def _shortened(text: str, width: int) -> str:
    """A text without its middle if it is longer than this; its ends tell it from others."""
    if len(text) <= width:
        return text
    end = (width - 1) // 2
    return f"{text[: width - 1 - end]}…{text[-end:]}"
