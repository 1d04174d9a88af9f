"""What a maker makes is what the constructor makes: same parameters, same values, frozen."""

from __future__ import annotations

import inspect
import weakref
from typing import Any

import attrs
import pytest

from payments_async._attrs import evolver, maker
from payments_async._validation.tables import RULES
from payments_async.bulk._protocol.answers import Posted, Word
from payments_async.models import Attempt, ResponseInfo
from payments_async.params import PreparedRequest

MADE: list[type[Any]] = [PreparedRequest, Attempt, ResponseInfo, *RULES, Posted, Word]
"""The classes that calls and rows make with a maker, and everything that is like them."""

CLASSES = pytest.mark.parametrize("cls", MADE, ids=lambda cls: cls.__name__)


def values(cls: type[Any], *, needed: bool = False) -> dict[str, Any]:
    """A value for each parameter, or for each without a default. A message is text; pickles keep no body."""
    fields = [field for field in attrs.fields(cls) if not needed or field.default is attrs.NOTHING]
    made: dict[str, Any] = {field.alias: {"n": str(number)} for number, field in enumerate(fields)}
    return {**made, "message": "a text", "body": b""} if cls is ResponseInfo and not needed else made


def fields_of(made: Any) -> dict[str, Any]:
    return {field.name: getattr(made, field.name) for field in attrs.fields(type(made))}


@CLASSES
def test_every_class_that_is_made_often_has_a_maker_of_its_own(cls: type[Any]) -> None:
    assert maker(cls) is not cls
    half: Any = maker(cls).__globals__["T"]  # type: ignore[attr-defined] # it is a function
    assert repr(object.__new__(half)) == f"<_{cls.__name__}>"
    made = list(inspect.signature(maker(cls)).parameters.values())
    own = list(inspect.signature(cls).parameters.values())
    assert [(one.name, one.kind) for one in made] == [(one.name, one.kind) for one in own]


@CLASSES
@pytest.mark.parametrize("needed", [True, False])
def test_the_object_is_the_constructors_and_frozen(cls: type[Any], needed: bool) -> None:
    given = values(cls, needed=needed)
    made, constructed = maker(cls)(**given), cls(**given)
    assert type(made) is cls
    assert fields_of(made) == fields_of(constructed)
    assert repr(made) == repr(constructed)
    assert weakref.ref(made)() is made
    for change in (lambda name: setattr(made, name, None), lambda name: delattr(made, name)):
        with pytest.raises(attrs.exceptions.FrozenInstanceError):
            change(attrs.fields(cls)[0].name)
    with pytest.raises(AttributeError):
        object.__setattr__(made, "another", 1)


@CLASSES
def test_a_changed_copy_is_frozen_and_has_all_other_values(cls: type[Any]) -> None:
    before, evolve = maker(cls)(**values(cls)), evolver(cls)
    name = attrs.fields(cls)[-1].name
    after = evolve(before, **{name: "other"})
    assert (type(after), fields_of(after)) == (cls, {**fields_of(before), name: "other"})
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        setattr(after, name, None)
    with pytest.raises(AttributeError, match="colour"):
        evolve(before, colour=1)
