"""Base class of records: unknown fields, the answer, conversion to dict and JSON, a masked repr."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any, ClassVar, Final

import attrs

from .._attrs import ValueMixin, made_when_asked
from ._masking import HIDDEN, address, masked, without_keys
from ._response import ResponseInfo, answer_of

_WIDTH: Final = 160  # characters of a repr at most: two lines of 80
_LONGEST: Final = 60  # characters of one value in it
_FIRST = ("id=", "status=", "reference=")


def _none_if_empty(extra: dict[str, Any] | None) -> dict[str, Any] | None:
    """Convert empty unknown fields to None, so that records without any are equal."""
    return extra or None


@attrs.frozen(weakref_slot=False, eq=False, repr=False)
class Record(ValueMixin):
    """A frozen record. Missing and null fields are both None; fields we do not know are in `extra`."""

    _decimal_texts: ClassVar[frozenset[str]] = frozenset()
    """Fields that are a Decimal here and text on the wire."""
    _is_payers: ClassVar[bool] = False
    """True if `to_dict` masks none of its fields, as the payer is sent on with them."""
    _extra: dict[str, Any] | None = attrs.field(
        default=None, converter=_none_if_empty, kw_only=True, alias="extra", repr=False, hash=False
    )
    _response: ResponseInfo | None = attrs.field(
        default=None, kw_only=True, alias="response", eq=False, hash=False, repr=False
    )

    @property
    def extra(self) -> Mapping[str, Any]:
        """Fields that this class does not have, and timestamps that could not be read."""
        return self._extra or {}

    @property
    def response(self) -> ResponseInfo | None:
        """The answer with this record; None on nested records and on records that you made."""
        return self._response

    def __repr__(self) -> str:
        """What is set, on two lines of a terminal at most; `...` stands for what does not fit.

        Personal and account data is masked. Nested records show their first field, unknown fields their
        names.
        """
        parts = sorted(shown_fields(self, _short), key=lambda part: not part.startswith(_FIRST))
        parts += [f"extra={sorted(self.extra)}"] if self.extra else []
        return f"{type(self).__name__}({_fitting(parts, _WIDTH - len(type(self).__name__) - 2)})"

    def _shown_inside(self) -> str:
        """What the repr of the record around it shows of this one."""
        return next((part.partition("=")[2] for part in shown_fields(self, _short)), "...")

    def to_dict(self, *, unmasked: bool = False) -> dict[str, Any]:
        """The record under its wire names: Decimals and datetimes unchanged, nested records as dicts.

        What the repr masks is masked: text is `***`, pairs and lists are None, and unknown fields, which may
        hold such data, are left out. A next action is whole: the payer is sent on with it.

        Args:
            unmasked: give personal and account data and unknown fields, too.
        """
        fields = _fields(self) if unmasked else _shown_values(self)
        return {name: _plain(value, unmasked=unmasked) for name, value in fields.items()}

    def to_json(self) -> str:
        """The record as JSON text: amounts are exact numbers, timestamps ISO 8601.

        The value of an exchange rate in its object form is text, as on the wire (Resources, Exchange rate).
        """
        return json_text(self)


attrs.resolve_types(Record)  # for `typing.get_type_hints` of subclasses, whose modules lack these names


def held(cls: type[Record], name: str) -> Callable[[Record], Any]:
    """Make what gives a nested record's values, under its own names, though the record was not made yet."""
    field = vars(cls)[name]
    return getattr(field, "slot", field).__get__  # type: ignore[no-any-return] # a slot's own


attach: Final = made_when_asked(Record, "_response", answer_of)
"""Attach to a record what `answer_of` makes its response of."""


def _own_fields(record: Record) -> dict[str, Any]:
    names = [field.name for field in attrs.fields(type(record)) if not field.name.startswith("_")]
    return {name: getattr(record, name) for name in names}


def _fields(record: Record) -> dict[str, Any]:
    """The fields under their wire names, unknown ones included."""
    return {**_own_fields(record), **record.extra}


def _shown_values(record: Record) -> dict[str, Any]:
    """The fields of the record's class, with what its repr masks hidden."""
    values = _own_fields(record)
    if record._is_payers:
        return values
    fields: Any = attrs.fields_dict(type(record))
    return {name: _hidden(fields[name], value) for name, value in values.items()}


def _hidden(field: attrs.Attribute[Any], value: Any) -> Any:
    """A field as it may be shown: text that the repr masks is `***`, an address loses its token."""
    if value is None or not callable(field.repr):
        return value
    if field.repr is masked:
        return HIDDEN if isinstance(value, str) else None
    return address(value)


def shown_fields(value: Any, show: Callable[[Any], str] = repr) -> Iterator[str]:
    """The fields of a record or request that are set, for its repr; personal and account data masked."""
    for field in attrs.fields(type(value)):
        item = getattr(value, field.name)
        if item is not None and item != field.default and field.repr is not False:
            yield f"{field.name}={(field.repr if callable(field.repr) else show)(item)}"


def _short(value: Any) -> str:
    if isinstance(value, Record):
        return value._shown_inside()
    if isinstance(value, datetime | Decimal):
        return str(value)
    text = without_keys(repr(value))
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 4]}...{text[-1]}"


def _fitting(parts: list[str], room: int) -> str:
    """As many of the parts as fit, and at least one."""
    text = ", ".join(parts)
    while len(text) > room and len(parts) > 1:
        parts = parts[:-1]
        text = ", ".join([*parts, "..."])
    return text


def _plain(value: Any, *, unmasked: bool) -> Any:
    if isinstance(value, Record):
        return value.to_dict(unmasked=unmasked)
    if isinstance(value, tuple):
        return [_plain(item, unmasked=unmasked) for item in value]
    return value


def json_text(value: Any) -> str:
    """Write JSON with Decimals as numbers with all their digits (the standard module cannot)."""
    if isinstance(value, Record):
        return json_text(_wire_values(value))
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(str(k))}: {json_text(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(json_text, value)) + "]"
    if isinstance(value, Decimal):
        return str(value)
    return json.dumps(value.isoformat() if isinstance(value, datetime) else value)


def _wire_values(record: Record) -> dict[str, Any]:
    """The fields, with Decimals as text where the service sends text."""
    fields = _fields(record)
    numbers = {name: fields[name] for name in record._decimal_texts if isinstance(fields[name], Decimal)}
    texts = {name: f"{value:f}" for name, value in numbers.items()}  # one beyond any rate is a text already
    return {**fields, **texts}
