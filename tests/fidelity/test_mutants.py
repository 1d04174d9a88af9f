"""A service that is wrong in one place does not pass the contract: mutants of the core, by changed source.

The table of them is in `mutants.py`, the promises are in `contract.py`.
"""

from __future__ import annotations

import gc
import importlib
import inspect
import types
from collections.abc import Callable, Iterator

import pytest

from tests.fidelity.contract import CHECKS, broken
from tests.fidelity.mutants import MUTANTS, Mutant

# many times as slow when it is traced; others cover the same
pytestmark = pytest.mark.no_cover  # heavy under a tracer; what it runs is covered without it

PACKAGE = "payments_async.sandbox."


def function_at(module: types.ModuleType, place: str) -> types.FunctionType:
    """The function of a module, of a class, or behind a property."""
    owner, _, name = place.partition(".<locals>")[0].rpartition(".")
    found = inspect.getattr_static(getattr(module, owner) if owner else module, name)
    function = found.fget if isinstance(found, property) else found
    assert isinstance(function, types.FunctionType)
    return function


def alive(module: types.ModuleType, place: str) -> list[types.FunctionType]:
    """The functions made so far by another one, at a place such as `pairs.<locals>.check`."""
    (code,) = codes(function_at(module, place).__code__, place)
    gc.collect()  # what other tests left is not to be kept for good
    gc.unfreeze()  # `tests/conftest.py` froze what was made before the first test
    try:
        objects = gc.get_objects()
    finally:
        gc.freeze()
    return [one for one in objects if isinstance(one, types.FunctionType) and one.__code__ is code]


def changed(module: types.ModuleType, mutant: Mutant) -> types.CodeType:
    """The code at the mutant's place with its text changed there."""
    source, own = inspect.getsource(module), inspect.getsource(function_at(module, mutant.place))
    assert own.count(mutant.before) == 1, "the text is there, once"
    text = source.replace(own, own.replace(mutant.before, mutant.after))
    (code,) = codes(compile(text, str(module.__file__), "exec"), mutant.place)
    return code


def codes(code: types.CodeType, qualified: str) -> Iterator[types.CodeType]:
    """The code within `code` that has this qualified name."""
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            if constant.co_qualname == qualified:
                yield constant
            yield from codes(constant, qualified)


@pytest.fixture
def mutate(monkeypatch: pytest.MonkeyPatch) -> Callable[[Mutant], None]:
    def apply(mutant: Mutant) -> None:
        module = importlib.import_module(PACKAGE + mutant.module)
        nested = "<locals>" in mutant.place
        functions = alive(module, mutant.place) if nested else [function_at(module, mutant.place)]
        code = changed(module, mutant)
        assert functions
        for function in functions:
            monkeypatch.setattr(function, "__code__", code)

    return apply


@pytest.mark.fact("idempotency.expires-after-24h", "limit.diagnostics-per-record")
@pytest.mark.fact("error.409.duplicate-reference", "request.payouts.reference.unique")
def test_the_core_keeps_every_promise() -> None:
    assert broken() == []


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_breaks_the_promise_that_is_meant(mutant: Mutant, mutate: Callable[[Mutant], None]) -> None:
    mutate(mutant)
    assert mutant.caught_by in broken()


def test_every_promise_has_caught_a_mutant() -> None:
    """So that none is there for show."""
    assert {check.__name__ for check in CHECKS} == {mutant.caught_by for mutant in MUTANTS}
