"""One test a request class that proves a request sound, made from its table of rules. Pure.

Nearly every request is in order, and walking its table to learn that costs more than writing its bytes. Here
the table becomes one function without a loop or a look-up. A field first meets a cheap test, which can only
be true of a value that its rule accepts; where it is not, the rule is asked. So the answer is the table's,
whatever the value; the words for a "no" are left to whoever walks the table (`tables`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

import attrs

from . import rules as _rules
from .rules import Matching, Nested, Rule, Text

Test = Callable[[Any, datetime], bool]
"""Whether a request has no fault at all, at a moment."""

_SIMPLE = frozenset({int, bool, type(None)})

_SCOPE: Mapping[str, Any] = {
    "Decimal": Decimal,
    "empty": _rules.is_empty,
    "not_both": _rules.not_both,
    "ONE": Decimal(1),
    "MOST": Decimal(10**20),
}

_FORMS: Mapping[str, str] = {
    "[A-Za-z]{2}": "len(v) == 2 and v.isalpha()",
    "[A-Z]{3}": "len(v) == 3 and v.isalpha() and v.isupper()",
}
"""What a form asks of ASCII text, without the price of a regular expression."""


def make_test(
    cls: type[Any], rules: Mapping[str, Rule], required: Iterable[str], nested: Callable[[type], Test]
) -> Test:
    """The test of one class. `nested` gives those of the classes inside it."""
    scope: dict[str, Any] = {**_SCOPE, "plain": _plain}
    lines = ["def sound(o, now):"]
    for index, (name, rule) in enumerate(rules.items()):
        scope[f"rule{index}"] = rule
        lines.append(f"  v = o.{name}")
        if isinstance(rule, Nested):
            scope[f"cls{index}"], scope[f"test{index}"] = rule.cls, nested(rule.cls)
            lines += _nested_lines(index, rule.cls, required=name in required)
        else:
            lines += _plain_lines(index, rule, required=name in required)
    if "entity_created_at" in rules:
        lines += ["  v = o.entity_created_at", "  if v is not None and not v == '' and v > now: return False"]
    if _rules.is_restriction(cls):
        lines.append("  if not_both(o.country_code, o.phone): return False")
    exec("\n".join([*lines, "  return True"]), scope)  # noqa: S102 - source made above from our own tables
    return scope["sound"]  # type: ignore[no-any-return] # it comes from exec


def _plain_lines(index: int, rule: Rule, *, required: bool) -> list[str]:
    cheap = _cheap(rule)
    if required:
        return [f"  if not ({cheap}) and (empty(v) or rule{index}(v)): return False"]
    given = "True" if rule is _rules.reference else "not v == ''"
    return [f"  if v is not None and not ({cheap}) and {given} and rule{index}(v): return False"]


def _cheap(rule: Rule) -> str:
    """Source of a test of `v` that is false for empty text and for whatever the rule refuses."""
    if isinstance(rule, Text):
        bound = f" and len(v) <= {rule.maximum}" if rule.maximum is not None else ""
        return f"v.__class__ is str and v and v.isascii(){bound}"
    if isinstance(rule, Matching):
        return f"v.__class__ is str and v.isascii() and {_FORMS.get(rule.form, 'False')}"
    if rule is _rules.reference:
        printable = "v.__class__ is str and v.isascii() and v.isprintable()"
        return f"{printable} and len(v) <= 191 and '' != v == v.strip()"
    if rule is _rules.amount:  # 40 characters hold 40 digits at most
        return "v.__class__ is Decimal and v.is_finite() and ONE <= v < MOST and len(str(v)) <= 40"
    if rule is _rules.metadata:
        return "v.__class__ is dict and len(v) <= 10 and plain(v)"
    return "v.__class__ is dict and plain(v)" if rule is _rules.json_object else "False"


def _nested_lines(index: int, cls: type[Any], *, required: bool) -> list[str]:
    """An object of its class is tested by that class's test; anything else is the rule's to judge."""
    own, given = f"not test{index}(v, now)", "v is not None and not v == ''"
    if required:  # of an object in order, whatever is true was given
        true = " or ".join(f"v.{field.name}" for field in attrs.fields(cls))
        own, given = f"{own} or not ({true} or not empty(v))", "True"
    lines = [f"  if type(v) is cls{index}:", f"    if {own}: return False", f"  elif {given}:"]
    if required:
        lines.append("    if empty(v): return False")
    plain = "False" if _rules.is_restriction(cls) else "v.__class__ is dict and plain(v)"
    return [*lines, f"    if not ({plain}) and rule{index}(v): return False"]


def _plain(pairs: dict[Any, Any], levels: int = 8) -> bool:
    """Whether all is as plain as can be: keys of ASCII text; values too, or whole numbers, nothing, pairs."""
    for name, value in pairs.items():
        if name.__class__ is not str or not name.isascii():
            return False
        if not (
            value.isascii() if value.__class__ is str else value.__class__ in _SIMPLE or _inner(value, levels)
        ):
            return False
    return True


def _inner(value: Any, levels: int) -> bool:
    """Whether these are pairs as plain. Of few levels: the rule counts them, and refuses a great many."""
    return value.__class__ is dict and levels > 0 and _plain(value, levels - 1)
