"""Makes frozen values at a quarter of the price of their constructors.

A frozen class fills each slot through `object.__setattr__`. What a maker returns fills those of a twin class
of the same layout, whose slots are stored to directly, and turns the twin into the frozen object at the end.
For what every call makes; elsewhere the constructor will do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ParamSpec, TypeVar

import attrs

P = ParamSpec("P")
T = TypeVar("T")


class Value:
    """A base that leaves its classes weak references: a slot of their own for them keeps a twin away."""

    __slots__ = ("__weakref__",)


def maker(cls: Callable[P, T]) -> Callable[P, T]:
    """The constructor of a frozen class with slots: same parameters, defaults and converters, same object.

    The class itself, where no twin can become it: it needs the base `Value`, or no weak references.
    """
    twin = _twin(cls)
    if twin is None:
        return cls
    scope: dict[str, Any] = {"C": cls, "T": twin, "new": object.__new__}
    parameters, lines = _source(cls, scope)
    head = f"def make({', '.join(parameters)}):"
    exec("\n".join([head, "  o = new(T)", *lines, "  o.__class__ = C", "  return o"]), scope)  # noqa: S102 - source made of our own field names
    return scope["make"]  # type: ignore[no-any-return] # it comes from exec


def _source(cls: Any, scope: dict[str, Any]) -> tuple[list[str], list[str]]:
    """The parameters and the stores, each with what it needs in the scope."""
    parameters: list[str] = []
    lines: list[str] = []
    fields = attrs.fields(cls)
    for field in sorted(fields, key=lambda field: field.kw_only):
        assert field.validator is None, "a maker does not validate"
        if field.kw_only and "*" not in parameters:
            parameters.append("*")
        name = value = field.alias
        if isinstance(field.default, attrs.Factory):  # type: ignore[arg-type] # a class, which its stub hides
            scope["MISSING"], scope[f"factory_{name}"] = attrs.NOTHING, field.default.factory
            parameters.append(f"{name}=MISSING")
            value = f"factory_{name}() if {name} is MISSING else {name}"
        elif field.default is attrs.NOTHING:
            parameters.append(name)
        else:
            scope[f"default_{name}"] = field.default
            parameters.append(f"{name}=default_{name}")
        if field.converter is not None:
            scope[f"convert_{name}"] = field.converter
            value = f"convert_{name}({value})"
        lines.append(f"  o.{field.name} = {value}")
    return parameters, lines


def _twin(cls: Any) -> type[Any] | None:
    """A class of the same memory layout whose slots can be written; None when there cannot be one."""
    twin = writable(cls.__name__, cls.__bases__, cls.__slots__)
    try:
        object.__new__(twin).__class__ = cls
    except TypeError:
        return None
    return twin


def writable(name: str, bases: tuple[type[Any], ...], slots: Iterable[str]) -> type[Any]:
    """A class with slots that are stored to directly, to be filled and then to become the frozen one.

    Both methods have to be `object`'s own again: they share one slot of the type, and storing is direct, and
    15 times as fast, only if neither is a Python function.
    """
    body = {
        "__slots__": tuple(slots),
        "__setattr__": object.__setattr__,
        "__delattr__": object.__delattr__,
        "__repr__": named,
    }
    return type(f"_{name}", bases, body)


def named(value: object) -> str:
    """The repr of what must not show what it holds, or may not be whole yet: its class."""
    return f"<{type(value).__name__}>"
