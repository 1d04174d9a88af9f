"""Texts of the payer's pages: values in them, times and names of countries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._common.timestamps import date_of

if TYPE_CHECKING:
    from markupsafe import Markup

NO_BREAK = "\u00a0"
"""Stands between the groups of a number."""


def say(text: str, /, **values: object) -> Markup:
    """A text as HTML. Values take the places of `{name}` in it; they are escaped, unless they are Markup."""
    from markupsafe import Markup, escape  # part of Jinja2: imported with the first page

    return Markup(escape(text)).format(**values)  # noqa: S704  # it is escaped


def time(seconds: float) -> str:
    """A time in UTC, to the minute."""
    at = date_of(seconds)
    return f"{at.day} {at:%b %Y, %H:%M} UTC"


def country(code: str | None) -> str:
    """The name of a country; empty without one."""
    from babel import Locale

    return str(Locale("en", "GB").territories.get(code, code)) if code else ""
