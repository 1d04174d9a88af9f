"""What `ValueMixin` says of objects is what attrs says of the same fields."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from payments_async import events, models, params
from payments_async._attrs import ValueMixin
from payments_async._rate_limit import limits

PUBLIC: list[type[Any]] = [
    cls
    for module in (limits, events, models, params)
    for cls in (getattr(module, name) for name in dir(module))
    if isinstance(cls, type) and issubclass(cls, ValueMixin) and attrs.has(cls)
]
CLASSES = pytest.mark.parametrize("cls", dict.fromkeys(PUBLIC), ids=lambda cls: cls.__name__)


def values(cls: Any, *, unlike: str | None = None) -> dict[str, Any]:
    """A value for every field; another one for one of them."""
    named = {field.name: number + 1 for number, field in enumerate(attrs.fields(cls))}
    return {name: value + 100 if name == unlike else value for name, value in named.items()}


def made(cls: Any, given: dict[str, Any]) -> Any:
    """An object with these values, whatever the constructor would say to them."""
    found = object.__new__(cls)
    for name, value in given.items():
        object.__setattr__(found, name, value)
    return found


def by_attrs(cls: Any) -> Any:
    """A class of the same fields with the methods that attrs writes."""
    fields = {
        field.name: attrs.field(eq=field.eq, hash=field.hash, repr=field.repr) for field in attrs.fields(cls)
    }
    return attrs.make_class(cls.__name__, fields, slots=True, frozen=True)


@CLASSES
def test_two_objects_are_alike_as_attrs_has_it(cls: Any) -> None:
    theirs = by_attrs(cls)
    one, same = made(cls, values(cls)), made(cls, values(cls))
    assert one == same
    assert (one != same) is False
    assert hash(one) == hash(same)
    for field in attrs.fields(cls):
        given = values(cls, unlike=field.name)
        other, their_one, their_other = made(cls, given), made(theirs, values(cls)), made(theirs, given)
        assert (one == other) is (their_one == their_other), field.name
        assert (hash(one) == hash(other)) is (hash(their_one) == hash(their_other)), field.name


SHOWN = [
    cls for cls in dict.fromkeys(PUBLIC) if not issubclass(cls, models.Record | params.Params | models.Page)
]
"""The others show only what is set, or how much there is."""


@pytest.mark.parametrize("cls", SHOWN)
def test_the_repr_is_the_one_attrs_writes(cls: Any) -> None:
    assert repr(made(cls, values(cls))) == repr(made(by_attrs(cls), values(cls)))


def test_what_cannot_be_hashed_makes_its_record_unhashable() -> None:
    with pytest.raises(TypeError, match="unhashable"):
        hash(models.Failover(extra=None, is_failover=[]))  # type: ignore[arg-type] # on purpose
    assert hash(models.Failover(decision=[])) == hash(models.Failover(decision={}))
