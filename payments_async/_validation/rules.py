"""The rules for values of a request, one function each. Pure: takes a value, returns its fault or None.

A message names the rule and the type of the value, never the value, which may be account data.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

import attrs

from .. import params
from ..params.requests import MOST_DIGITS, MOST_POWER, has_three_decimals

Rule = Callable[[Any], str | None]
"""Returns a value's fault, as the end of a sentence that starts with the field; None for a good value."""

# Compiled by `re` at their first use: most requests never need one.
STATEMENT = r"[\w\s.,-]*"
_CONTROL = r"[\x00-\x1f\x7f-\x9f]"
_UNSEEN = (
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2800\u3164\ufe00-\ufe0f\uffa0"
    "\U0001d159\U000e0100-\U000e01ef]"
)
"""Invisible characters that Python calls printable: Default_Ignorable_Code_Point and two blanks."""
COLOR = r"#?(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{6}|[0-9a-fA-F]{8})"
_MAX_DEPTH = 32
LEAST_AMOUNT = Decimal(1)
MINUTES = range(30, 1441)  # of a checkout session
MOST_OF_DESCRIPTOR = 22  # characters
MOST_PAIRS = 10  # of a request's metadata
MOST_OF_REFERENCE = 191  # characters
_HARMLESS = r"(?a)(?=.*\d)[A-Za-z0-9_./#-]{1,40}"
_MOST_DIGITS = 6  # more digits than this may be a phone or account number
_HEADER_NAME = r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}"
_OURS = frozenset(
    (
        *("accept-encoding", "authorization", "connection", "content-encoding", "content-length"),
        *("content-type", "expect", "host", "te", "trailer", "transfer-encoding", "upgrade"),
        "x-idempotency-key",
    )
)
"""Headers that only the client may set."""


def kind(value: object) -> str:
    """A value's type, in words for a message."""
    return "nothing" if value is None else type(value).__name__


def described(value: object) -> str:
    """A value's type and, for a text, its length."""
    return f"text of {len(value)} characters" if isinstance(value, str) else kind(value)


def is_identifier(text: str) -> bool:
    """Return whether a text may be in a message: the name of a record, not a person's name or account."""
    return sum(letter.isdigit() for letter in text) <= _MOST_DIGITS and bool(
        re.fullmatch(_HARMLESS, text, re.ASCII)
    )


def is_unicode(value: str) -> bool:
    """Return whether UTF-8 can encode a text: no lone surrogates."""
    try:
        return value.isascii() or bool(value.encode())
    except UnicodeEncodeError:
        return False


def is_empty(value: Any) -> bool:
    """Return whether a value is empty: None, empty text, or an object with only such values."""
    cls: Any = type(value)  # `value.__class__` may be a mock's
    if issubclass(cls, params.Params):
        return all(is_nothing(getattr(value, field.name)) for field in attrs.fields(cls))
    if isinstance(value, Mapping):
        return all(map(is_nothing, value.values()))
    return is_nothing(value)


def suggestion(name: str, known: Iterable[str], likeness: float = 0.6) -> str:
    """Name the nearest of the known names, as the end of a message; "" without one that is so like it."""
    import difflib  # for a slip

    near = difflib.get_close_matches(name, sorted(known), 1, likeness)
    return f"; did you mean {near[0]!r}?" if near else ""


def is_nothing(value: Any) -> bool:
    """Return whether a value counts as left out."""
    return value is None or bool(value == "")


class Text:
    """A string with a maximum length."""

    def __init__(self, maximum: int | None = None) -> None:
        self.maximum = maximum

    def __call__(self, value: Any) -> str | None:
        if not isinstance(value, str):
            return f"must be text, not {kind(value)}"
        if not is_unicode(value):
            return "holds a lone surrogate, which is not text"
        if self.maximum is not None and len(value) > self.maximum:
            return f"has {len(value)} characters, at most {self.maximum} are allowed"
        return None


class Letters:
    """So many letters: capitals, or of any case. `wanted` is the code in words."""

    def __init__(self, length: int, wanted: str, *, any_case: bool = False) -> None:
        self.wanted = wanted
        self.form: str = f"[A-Z{'a-z' if any_case else ''}]{{{length}}}"
        """A regular expression."""
        self.known: set[str] = set()  # the codes that were found good: there are few

    def are_not_capitals(self, value: str) -> bool:
        """Return whether a text is not a code as it is usually written."""
        if value not in self.known and re.fullmatch(self.form, value) and value.isupper():
            self.known.add(value)
        return value not in self.known

    def __call__(self, value: Any) -> str | None:
        if isinstance(value, str):
            if re.fullmatch(self.form, value):
                return None
            if re.fullmatch(self.form, value.upper()):
                return f"must be {self.wanted}: write it in capitals"
        return f"must be {self.wanted}, not {described(value)}"


def amount(value: Any) -> str | None:
    """Major units, exact, at least 1 (Endpoints, Shared body fields), with a limit on the digits."""
    if not isinstance(value, Decimal):
        if has_three_decimals(value):
            return amount(Decimal(value))
        if isinstance(value, float):
            return 'is a float, which is not exact: write decimal text ("10.10"), an int or a Decimal'
        if isinstance(value, str):
            signed = value[:1] in ("+", "-")
            return "begins with a sign" if signed else "is text that is not a decimal number"
        return f"must be a Decimal, an int or decimal text, not {kind(value)}"
    if not value.is_finite():
        return "must be a finite number"
    if value < LEAST_AMOUNT:
        return "must be at least 1, in major units"
    # The text has every digit, and is the cheaper one to make.
    if value.adjusted() > MOST_POWER or (
        len(str(value)) > MOST_DIGITS and len(value.as_tuple().digits) > MOST_DIGITS
    ):
        return "has more digits than any amount of money"
    return None


def reference(value: Any) -> str | None:
    """At most 191 characters that can be found again: not blank, on one line, no invisible characters."""
    if (
        value.__class__ is str
        and 0 < len(value) <= MOST_OF_REFERENCE
        and value.isascii()
        and value.isprintable()
        and value == value.strip()
    ):
        return None  # nearly every reference
    if problem := Text(MOST_OF_REFERENCE)(value):
        return problem
    if not value.strip():
        return "must not be blank: leave it out, or give your own identifier"
    return name_problem(value)


def name_problem(name: str) -> str | None:
    """The reason why a name could be confused with another: blanks at its ends, invisible characters."""
    if re.search(_CONTROL, name):
        return "holds a control character"
    if name != name.strip():
        return "begins or ends with a blank: take it away, as nothing is trimmed"
    if name.isprintable() and not re.search(_UNSEEN, name):
        return None
    odd = next(filter(is_unseen, name))
    return f"holds U+{ord(odd):04X}, which is invisible or unassigned"


def is_unseen(letter: str) -> bool:
    """Return whether a character is invisible or unknown, other than the ordinary space."""
    return not letter.isprintable() or bool(re.match(_UNSEEN, letter))


def statement_descriptor(value: Any) -> str | None:
    """At most 22 letters, digits, whitespace, periods, commas and hyphens."""
    problem = Text(MOST_OF_DESCRIPTOR)(value)
    if problem or (re.fullmatch(STATEMENT, value) and "_" not in value):
        return problem
    return "may hold only letters, digits, whitespace, period, comma and hyphen"


def metadata(value: Any) -> str | None:
    """Up to 10 pairs, JSON throughout."""
    if isinstance(value, Mapping) and len(value) > MOST_PAIRS:
        return f"has {len(value)} pairs, at most {MOST_PAIRS} are allowed"
    return json_object(value)


def minutes(value: Any) -> str | None:
    """A session's lifetime, 30 to 1440 minutes."""
    if not isinstance(value, int) or isinstance(value, bool):
        return f"must be a whole number of minutes, not {kind(value)}"
    return None if value in MINUTES else f"must be {MINUTES[0]} to {MINUTES[-1]} minutes"


def timestamp(value: Any) -> str | None:
    """An aware datetime."""
    if not isinstance(value, datetime):
        return f"must be a datetime, not {kind(value)}"
    if value != value:
        return "is NaT, which is no time: leave it out"
    return None if value.utcoffset() is not None else "must say its time zone: use an aware datetime"


def color(value: Any) -> str | None:
    """A hex colour."""
    fits = isinstance(value, str) and re.fullmatch(COLOR, value)
    return None if fits else f"must be a hex colour such as #0a7d4f, not {described(value)}"


def boolean(value: Any) -> str | None:
    """True or False."""
    return None if isinstance(value, bool) else f"must be True or False, not {kind(value)}"


def json_object(value: Any) -> str | None:
    """A mapping that JSON can represent unchanged."""
    return json_problem(value) if isinstance(value, Mapping) else f"must be a mapping, not {kind(value)}"


def json_problem(value: Any, path: str = "", depth: int = 0) -> str | None:
    """The reason why JSON cannot represent a value exactly, after the path of keys to it; None if it can."""
    problem: str | None = None
    if depth > _MAX_DEPTH:
        return f"is nested more than {_MAX_DEPTH} deep"
    if isinstance(value, Mapping):
        if all(isinstance(key, str) and is_unicode(key) for key in value):
            return _first_problem(value.items(), path, depth)
        problem = "must have text keys throughout"
    elif isinstance(value, list | tuple):
        return _first_problem(enumerate(value), path, depth)
    elif isinstance(value, float | Decimal):
        problem = None if Decimal(value).is_finite() else "is a number that is not finite"
    elif isinstance(value, str):
        problem = None if is_unicode(value) else "holds a lone surrogate, which is not text"
    elif value is not None and not isinstance(value, int):
        article = "an" if kind(value)[0].lower() in "aeiou" else "a"
        problem = f"is {article} {kind(value)}, which JSON cannot carry"
    return f"{path} {problem}" if problem and path else problem


def _first_problem(items: Iterable[tuple[Any, Any]], path: str, depth: int) -> str | None:
    for key, item in items:
        step = str(key) if is_identifier(f"{key}0") else "***"  # it may be an account
        if problem := json_problem(item, f"{path}.{step}"[:200] if path else step[:200], depth + 1):
            return problem
    return None


def query(value: Any) -> str | None:
    """A mapping of query parameters: plain values, or lists of them."""
    if not isinstance(value, Mapping):
        return f"must be a mapping, not {kind(value)}"
    items = [one for item in value.values() for one in (item if isinstance(item, list | tuple) else [item])]
    if any(isinstance(item, Mapping | list | tuple) for item in items):
        return "holds a nested value, which a query cannot carry"
    return json_problem(value)


def headers(value: Any) -> str | None:
    """A mapping of header names to values, none of them the client's own."""
    if not isinstance(value, Mapping):
        return f"must be a mapping, not {kind(value)}"
    return next((p for name, text in value.items() if (p := _header_problem(name, text))), None)


def _header_problem(name: object, value: object) -> str | None:
    if not isinstance(name, str) or not re.fullmatch(_HEADER_NAME, name):
        return "has a name that is not a header's"
    if name.lower() in _OURS:
        return f"cannot set {name}: the client does"
    if not isinstance(value, str) or not all(
        " " <= character <= "~" or character == "\t" for character in value
    ):
        return f"{name} must be printable ASCII text on one line"
    return None


def restriction_problem(country_code: object, phone: object) -> str | None:
    """A restriction is to one country or to one phone number (Endpoints, POST /payment/checkouts)."""
    if country_code and phone:
        return "takes a country_code or a phone, not both"
    if isinstance(phone, Mapping) and not phone.get("number"):
        return "needs the number of its phone: without it the checkout is open to all"
    is_none = not country_code and not phone
    return "restricts nothing: give a country_code or a phone, or leave it out" if is_none else None


def other_class(value: object, cls: type, otherwise: str = "") -> str | None:
    """The reason to refuse a caller's own subclass: its additions have no rules and are not sent."""
    own = type(value)
    if own is cls or not issubclass(own, cls):
        return None
    return f"must be {cls.__name__} itself{otherwise}, not its subclass {own.__name__}"


class Nested:
    """A nested object: of its params class, whose own rules apply, or a mapping that is sent unchanged."""

    def __init__(self, cls: type[params.Params]) -> None:
        self.cls: type[params.Params] = cls
        fields: Any = attrs.fields(cls)  # type: ignore[arg-type] # each of these classes is of attrs
        self._known: frozenset[str] = frozenset(field.name for field in fields)

    def __call__(self, value: Any) -> str | None:
        """Return the fault of a value that is not of the class itself."""
        if problem := other_class(value, self.cls, " or a mapping"):
            return problem
        if not isinstance(value, Mapping):
            return f"must be {self.cls.__name__} or a mapping, not {kind(value)}"
        if problem := self._slip(value):
            return problem
        if self.cls is params.CheckoutRestriction and (
            problem := restriction_problem(value.get("country_code"), value.get("phone"))
        ):
            return problem
        return json_problem(value)

    def unknown(self, value: Mapping[Any, Any]) -> list[str]:
        """The names in a mapping that its class does not have, as they may be shown."""
        return [shown_name(name) for name in value if name not in self._known]

    def _slip(self, value: Mapping[Any, Any]) -> str | None:
        """A name that is meant otherwise. In a restriction any: without it the checkout is open to all."""
        refuses_all = self.cls is params.CheckoutRestriction
        for name in self.unknown(value):
            near = suggestion(name.lower(), self._known, 0.6 if refuses_all else 0.8)
            if near or refuses_all:
                return f"has an unknown field {name}{near}"
        return None


def shown_name(name: object) -> str:
    """The name of a field as it may be shown: it may be an account."""
    return str(name)[:40] if is_identifier(f"{name}0"[:40]) else "***"


country = Letters(2, "a two-letter country code", any_case=True)
currency = Letters(3, "three uppercase letters (ISO 4217)")
any_text = Text()
customer = Nested(params.CustomerInput)
