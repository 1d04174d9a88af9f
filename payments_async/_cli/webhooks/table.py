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

_WIDTHS: Final = {
    "Time": 8,
    "Event": 22,
    "Record": 24,
    "Amount": 16,
    "Status": 15,
    "Reference": 18,
    "Delivery": 11,
    "Result": 8,
    "Took": 6,
}
"""{column: its width}, in their order."""
_LONGEST_EVENT: Final = 31
_LEFT_OUT: Final = ("Reference", "Status", "Amount", "Delivery", "Record", "Took")
"""The columns that go where there is no room, the first one first."""
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
    shown = dict(_WIDTHS)
    for name in _LEFT_OUT:
        if _room(shown, width) < 0:
            del shown[name]
    shown["Event"] += min(max(_room(shown, width), 0), _LONGEST_EVENT - shown["Event"])
    return shown


def _room(widths: Mapping[str, int], width: int) -> int:
    return width - _MARK - sum(widths.values()) - _GAP * (len(widths) - 1)


def header(widths: Mapping[str, int]) -> Text:
    """The names of the columns."""
    return Text(" " * _MARK + _line({name: name for name in widths}, widths), "bold")


def row(delivery: ShownDelivery, name: str, result: DeliveryResult, widths: Mapping[str, int]) -> Text:
    """A delivery, and the colour of its record's status; if it was not accepted in red, and below it why."""
    cells = {
        "Time": f"{SYSTEM.now().astimezone():%H:%M:%S}",
        "Event": quoted(delivery.event),
        "Record": quoted(delivery.record),
        "Amount": delivery.money,
        "Status": quoted(delivery.status),
        "Reference": quoted(delivery.reference),
        "Delivery": name,
        "Result": str(result.status) if result.is_forwarded else "received",
        "Took": took_text(result.seconds),
    }
    line = _line(cells, widths)
    if not result.problem:
        text = Text(f"  · {line}")
        text.highlight_words([cells["Event"]], _STYLES.get(delivery.event.rpartition(".")[2], ""))
        return text
    start = _MARK + _WIDTHS["Time"] + _GAP
    why = wrapped(f"{'':{start}}{result.problem}", text_width(), hang=start)
    return Text(f"  ✗ {line}\n{why}", "red")


def answer_text(place: str, status: int) -> str:
    """What an application answered, with the status in words if it is a usual one."""
    words = f" {HTTPStatus(status).phrase}" if status in set(HTTPStatus) else ""
    return f"{place} answered {status}{words}"


def _line(cells: Mapping[str, str], widths: Mapping[str, int]) -> str:
    shown = (set_cell_size(_shortened(cells[name], width), width) for name, width in widths.items())
    return (" " * _GAP).join(shown).rstrip()


def _shortened(text: str, width: int) -> str:
    """A text without its middle if it is longer than this; its ends tell it from others."""
    if len(text) <= width:
        return text
    end = (width - 1) // 2
    return f"{text[: width - 1 - end]}…{text[-end:]}"
