"""Templates to text: Jinja2 with every value escaped and every unknown name an error."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING

from ..common.iso_codes import INSTALL_IT
from ..common.json import encode
from ..common.timestamps import stamp

if TYPE_CHECKING:
    from jinja2 import Environment

_TONES = {
    "completed": "ok",
    "refunded": "ok",
    "partially_refunded": "ok",
    "failed": "bad",
    "expired": "bad",
    "action_required": "wait",
    "pending": "idle",
    "processing": "wait",
}
_CLASSES = {0: "bad", 2: "ok", 3: "wait", 4: "wait", 5: "bad"}


@lru_cache
def environment() -> Environment:
    """The templates; `ModuleNotFoundError`, saying what to install, without the `sandbox` extra."""
    try:
        from jinja2 import DictLoader, Environment, StrictUndefined
    except ModuleNotFoundError as missing:
        told = f"the inspector needs Jinja2: {INSTALL_IT}"
        raise ModuleNotFoundError(told) from missing
    made = Environment(
        loader=DictLoader(_sources()),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(
        clock=clock, day=day, moment=moment, pretty=pretty, tone=tone, http_tone=http_tone, plain=plain
    )
    return made


def _sources() -> dict[str, str]:
    """Every template as it is now: files that an upgrade changes later would not fit the running code."""
    folder = files(__package__).joinpath("templates")
    return {file.name: file.read_text("utf-8") for file in folder.iterdir()}


def render(template: str, context: Mapping[str, object]) -> str:
    """One page."""
    return environment().get_template(template).render(context)


def moment(at: float | str) -> str:
    """A date and time to the second, as in `2026-01-01 00:00:05`."""
    text = stamp(at) if isinstance(at, float) else at
    return text[:19].replace("T", " ")


def day(at: float | str) -> str:
    """The date, as in `2026-01-01`."""
    return moment(at)[:10]


def clock(at: float | str) -> str:
    """The time of day to the millisecond."""
    text = stamp(at) if isinstance(at, float) else at
    return text[11:23]


def pretty(value: object) -> str:
    """JSON to read, two spaces deep."""
    import msgspec

    return msgspec.json.format(encode(value), indent=2).decode()


def plain(value: object) -> str:
    """A number without a tail of zeros; text as it is."""
    return (
        f"{value:f}"
        if isinstance(value, Decimal)
        else f"{value:g}"
        if isinstance(value, float)
        else str(value)
    )


def tone(status: str) -> str:
    """The colour of a status: ok, wait, bad or idle."""
    return _TONES.get(status, "idle")


def http_tone(status: int) -> str:
    """The colour of an HTTP status; 0 means that no answer was given."""
    return _CLASSES.get(status // 100, "idle")
