"""The languages of the payer's pages: texts, amounts, times and names, and how a request's language is found.

A catalogue, `languages/{code}.json`, has every English text of the pages as a key. A text in a template is
`_("...")`, one in Python a literal `Text("...")`: so the tests find each, and miss none in a catalogue.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Final, NewType

import attrs

from .._common.iso_codes import currency
from .._common.money import exactly
from .._common.timestamps import date_of

if TYPE_CHECKING:
    from markupsafe import Markup

Text = NewType("Text", str)
"""An English text of the pages. `{name}` in it stands for a value."""

_FOLDER = Path(__file__).parent / "languages"
_NO_BREAK = "\u00a0"
_ISOLATE, _END = "\u2068", "\u2069"
"""Around a value in a text from right to left, so that neither changes the order of the other."""


@attrs.frozen
class Language:
    """A language of the pages. `locale` is Babel's, `name` is what its speakers call it."""

    code: str
    name: str
    locale: str
    direction: str = "ltr"
    texts: Mapping[str, str] = attrs.field(factory=dict, repr=False)

    def say(self, text: Text, /, **values: object) -> Markup:
        """The text in this language, as HTML. Values are escaped, unless they are Markup."""
        from markupsafe import Markup, escape  # part of Jinja2: imported with the first page

        shown = {name: self._value(value) for name, value in values.items()}
        return Markup(escape(self.texts.get(text, text))).format(**shown)  # noqa: S704  # it is escaped

    def _value(self, value: object) -> object:
        whole = self.direction == "ltr" or hasattr(value, "__html__")
        return value if whole else f"{_ISOLATE}{value}{_END}"

    def amount(self, value: Decimal, code: str) -> str:
        """An amount with its currency and all its decimals."""
        from babel.numbers import format_currency

        facts = currency(code)
        if self.code == "en":
            return facts.plain(value).replace(" ", _NO_BREAK)
        with exactly():
            return format_currency(value, code, locale=self.locale, decimal_quantization=False)

    def time(self, seconds: float) -> str:
        """A time in UTC, to the minute."""
        from babel.dates import format_date, get_datetime_format

        at = date_of(seconds)
        day = format_date(at, "d MMM y" if self.code == "ar" else "medium", locale=self.locale)
        order = str(get_datetime_format("medium", locale=self.locale))
        return order.replace("{0}", f"{at:%H:%M} UTC").replace("{1}", day)

    def country(self, code: str | None) -> str:
        """The name of a country; empty without one."""
        from babel import Locale

        return str(Locale.parse(self.locale).territories.get(code, code)) if code else ""


def _texts(code: str) -> dict[str, str]:
    texts: dict[str, str] = json.loads((_FOLDER / f"{code}.json").read_bytes())
    return texts


ENGLISH: Final = Language("en", "English", "en_GB")
LANGUAGES: Final[Mapping[str, Language]] = {
    language.code: language
    for language in (
        ENGLISH,
        Language("fr", "Français", "fr", texts=_texts("fr")),
        Language("pt", "Português", "pt_PT", texts=_texts("pt")),
        Language("ar", "العربية", "ar", "rtl", _texts("ar")),
    )
}


def language_of(*wanted: object, accepted: str) -> Language:
    """The first wanted language that the pages have, else the best that the browser accepts, else English.

    A region counts for nothing: `pt-BR` is Portuguese.
    """
    tags = (*(tag for tag in wanted if isinstance(tag, str)), *_accepted_tags(accepted))
    bases = (tag.partition("-")[0].lower() for tag in tags)
    return next((LANGUAGES[base] for base in bases if base in LANGUAGES), ENGLISH)


_RANGE = re.compile(r"\s*([A-Za-z0-9-]+|\*)\s*(?:;\s*[qQ]\s*=\s*([01](?:\.[0-9]{0,3})?)\s*)?")


def _accepted_tags(header: str) -> tuple[str, ...]:
    """The language tags of an Accept-Language header, best first; without those it refuses."""
    ranges = [match for part in header.split(",") if (match := _RANGE.fullmatch(part))]
    weighed = [(match[1], float(match[2] or 1)) for match in ranges]
    ranked = sorted(weighed, key=lambda pair: -pair[1])
    return tuple(tag for tag, quality in ranked if quality > 0)
