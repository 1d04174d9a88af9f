"""Schemas of records and pages for pydantic. Account and personal data is masked, or `unmasked`.

An unknown field may hold such data, so it is shown with it. A next action is shown: the payer needs it.
"""

from __future__ import annotations

import types
import typing
from copy import deepcopy
from functools import cache, partial
from typing import Any, Final

import attrs
from pydantic_core import PydanticSerializationUnexpectedValue, core_schema

from .._codec.hooks import is_record
from .._validation.rules import kind
from ..models._masking import HIDDEN, address
from ..models._record import masked
from ..models.payments import NextAction
from .requests import blank_class, reference_of, reported


def record_schema(source: Any, handler: Any, *, masks: bool = True) -> core_schema.CoreSchema:
    """Make the schema of a record class, a page, or an item that could not be read.

    It takes objects of the class alone.
    """
    cls, args = typing.get_origin(source) or source, typing.get_args(source)
    hints = typing.get_type_hints(cls)
    fields = {}
    for name in _fields(cls):
        hint = hints[name] if masks else _unmasked(hints[name])
        meant = tuple[args[0], ...] if args and name == "items" else hint  # type: ignore[valid-type] # a page's
        fields[name] = core_schema.typed_dict_field(handler.generate_schema(meant))
    name = _name(source) if masks else f"{_name(source)}Unmasked"
    extra: Any = "ignore" if masks else "allow"
    shown = core_schema.typed_dict_schema(fields, cls=blank_class(name), extra_behavior=extra)
    return core_schema.no_info_plain_validator_function(
        partial(_instance, cls),
        ref=reference_of(cls, name),
        json_schema_input_schema=deepcopy(shown),
        serialization=core_schema.plain_serializer_function_ser_schema(
            partial(_written, cls, masks=masks), return_schema=shown
        ),
    )


class Unmasked:
    """Says in `Annotated[Payout, unmasked]` that account data is shown."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        return handler.generate_schema(_unmasked(source))


unmasked: Final = Unmasked()


def _unmasked(hint: Any) -> Any:
    """A type with the unmasked form of each record class in it."""
    if is_record(hint):
        return _unmasked_form(hint)
    args = tuple(map(_unmasked, typing.get_args(hint)))
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        return typing.Union[args]  # noqa: UP007 - built at run time
    return typing.get_origin(hint)[args] if args else hint


@cache
def _unmasked_form(cls: Any) -> type[Any]:
    """A name for pydantic, which keeps one schema for each class."""

    def schema(source: Any, handler: Any) -> Any:
        return record_schema(cls, handler, masks=False)

    body = {"__get_pydantic_core_schema__": staticmethod(schema), "__module__": cls.__module__}
    return type(f"{cls.__name__}Unmasked", (), body)


def _name(source: Any) -> str:
    """The name in documents, such as `Payout` and `Page_Payout`."""
    names = (typing.get_origin(source) or source, *typing.get_args(source))
    return "_".join(getattr(each, "__name__", "Any") for each in names)


def _fields(cls: Any) -> dict[str, Any]:
    """The fields that a record shows."""
    return {field.name: field for field in attrs.fields(cls) if field.repr is not False}


def _instance(cls: Any, value: Any) -> Any:
    """Take an object of the class; raise for anything else."""
    if isinstance(value, cls):
        return value
    raise reported(cls.__name__, {(): f"must be a {cls.__name__}, not {kind(value)}"})


def _written(cls: Any, value: Any, *, masks: bool) -> dict[str, Any]:
    """The fields of a record, with the nested ones left for their own schemas."""
    if not isinstance(value, cls):  # a member of a union
        raise PydanticSerializationUnexpectedValue(f"not a {cls.__name__}")
    fields = _fields(type(value))
    shown = {name: getattr(value, name) for name in fields}
    if not masks:
        return {**shown, **value.extra}
    if type(value) is NextAction:  # the payer is sent on with it
        return shown
    return {name: _masked(fields[name], item) for name, item in shown.items()}


def _masked(field: Any, value: Any) -> Any:
    """Hide what the repr hides: a text is `***`, an address loses its token, anything else is None."""
    if not callable(field.repr) or value is None:
        return value
    if field.repr is masked:
        return HIDDEN if isinstance(value, str) else None
    return address(value)
