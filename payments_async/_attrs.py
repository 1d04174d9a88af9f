"""Shared parts of frozen attrs classes: equality, hash and repr, and a fast constructor.

A frozen class fills each slot through `object.__setattr__`. The constructor that `maker` returns fills a
subclass whose slots can be assigned directly, and then changes its class to the frozen one. It is for the
five classes that every creation makes: with their own constructors `payouts.create` takes a quarter more
instructions. The rows of a batch are made and copied (`evolver`) in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, ParamSpec, TypeVar

import attrs

P = ParamSpec("P")
T = TypeVar("T")


def maker(cls: Callable[P, T], **defaults: Any) -> Callable[P, T]:
    """Makes a fast constructor of a frozen class with slots: same parameters, converters and result.

    `defaults` replace the class's own.
    """
    scope: dict[str, Any] = {"C": cls, "T": writable(cls)}
    parameters, lines = _source(cls, scope, defaults)
    head = f"def make({', '.join(parameters)}):"
    exec("\n".join([head, "  o = T()", *lines, "  o.__class__ = C", "  return o"]), scope)  # noqa: S102 - source made of our own field names
    return scope["make"]  # type: ignore[no-any-return] # it comes from exec


def evolver(cls: type[T]) -> Callable[..., T]:
    """Makes a fast `attrs.evolve` of a frozen class with slots: it copies values without converting them."""
    scope: dict[str, Any] = {"C": cls, "T": writable(cls)}
    copies = [f"  o.{field.name} = value.{field.name}" for field in attrs.fields(scope["C"])]
    changes = "  for name in changes: setattr(o, name, changes[name])"
    lines = [
        "def evolve(value, **changes):",
        "  o = T()",
        *copies,
        changes,
        "  o.__class__ = C",
        "  return o",
    ]
    exec("\n".join(lines), scope)  # noqa: S102 - source made of our own field names
    return scope["evolve"]  # type: ignore[no-any-return] # it comes from exec


def _source(cls: Any, scope: dict[str, Any], defaults: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Source of the parameters and the assignments; fills `scope` with the names that they use."""
    parameters: list[str] = []
    lines: list[str] = []
    fields = attrs.fields(cls)
    for field in sorted(fields, key=lambda field: field.kw_only):
        assert field.validator is None, "a maker does not validate"
        if field.kw_only and "*" not in parameters:
            parameters.append("*")
        name = value = field.alias
        default = defaults.get(name, field.default)
        if isinstance(default, attrs.Factory):  # type: ignore[arg-type] # a class, which its stub hides
            scope["MISSING"], scope[f"factory_{name}"] = attrs.NOTHING, default.factory
            parameters.append(f"{name}=MISSING")
            value = f"factory_{name}() if {name} is MISSING else {name}"
        elif default is attrs.NOTHING:
            parameters.append(name)
        else:
            scope[f"default_{name}"] = default
            parameters.append(f"{name}=default_{name}")
        if field.converter is not None:
            scope[f"convert_{name}"] = field.converter
            value = f"convert_{name}({value})"
        lines.append(f"  o.{field.name} = {value}")
    return parameters, lines


class _Made(property):
    """A slot's property, with the slot."""

    slot: Any


def made_when_asked(cls: Any, name: str, make: Callable[[Any], Any]) -> Callable[[Any, Any], None]:
    """Lets a slot hold what its value is made of, until somebody asks for it. Returns what fills the slot.

    A property takes the slot's name; the writable subclass has the slot itself. `make` returns what is made
    already unchanged.
    """
    slot = vars(cls)[name]
    get, fill = slot.__get__, slot.__set__

    def value(owner: Any) -> Any:
        held = get(owner)
        if (made := make(held)) is not held:
            fill(owner, made)
        return made

    kept = _Made(value, fill)
    kept.slot = slot
    setattr(cls, name, kept)
    return fill  # type: ignore[no-any-return] # a slot's own


def _writable(cls: Any) -> Any:
    """Makes a subclass with the same slots, assigned directly. Its objects can change to the frozen class.

    Both `__setattr__` and `__delattr__` have to be `object`'s own again: they share one slot of the type, and
    an assignment is direct, and 15 times as fast, only if neither is a Python function. The subclass's
    constructor takes and sets nothing. Both classes have the same layout, so Python lets an object change
    class.
    """
    pairs = [pair for base in cls.__mro__ for pair in vars(base).items()]
    body = {
        **{name: kept.slot for name, kept in pairs if type(kept) is _Made},
        "__slots__": (),
        "__init__": object.__init__,
        "__setattr__": object.__setattr__,
        "__delattr__": object.__delattr__,
        "__repr__": named,
    }
    return type(f"_{cls.__name__}", (cls,), body)


writable: Callable[[Any], Any] = cache(_writable)


def named(value: object) -> str:
    """The repr of an object that hides its content or may be incomplete: only its class name."""
    return f"<{type(value).__name__}>"


class ValueMixin:
    """A base whose objects are equal when they are of one class and equal in every compared field."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        cls: Any = self.__class__
        return all(getattr(self, name) == getattr(other, name) for name in _compared(cls))

    def __hash__(self) -> int:
        cls: Any = self.__class__
        return hash((cls.__qualname__, *[getattr(self, name) for name in _hashed(cls)]))

    def __repr__(self) -> str:
        """The fields with a repr, as the constructor takes them; personal and account data masked."""
        cls: Any = self.__class__
        shown = (f"{name}={show(getattr(self, name))}" for name, show in _shown(cls))
        return f"{cls.__qualname__}({', '.join(shown)})"


@cache
def _compared(cls: Any) -> tuple[str, ...]:
    return tuple(field.name for field in attrs.fields(cls) if field.eq)


@cache
def _hashed(cls: Any) -> tuple[str, ...]:
    fields = attrs.fields(cls)
    return tuple(field.name for field in fields if (field.eq if field.hash is None else field.hash))


@cache
def _shown(cls: Any) -> tuple[tuple[str, Any], ...]:
    fields = attrs.fields(cls)
    return tuple((field.name, field.repr if callable(field.repr) else repr) for field in fields if field.repr)
