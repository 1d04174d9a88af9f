"""The public names: one list, the same for the runtime, for `dir` and for type checkers."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import payments_async

SOURCE = Path(payments_async.__file__).read_text(encoding="utf-8")


def names_for_type_checkers() -> set[str]:
    """What the module imports `as` itself under TYPE_CHECKING, and the version."""
    aliases = [
        alias
        for node in ast.walk(ast.parse(SOURCE))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    ]
    return {alias.asname for alias in aliases if alias.asname == alias.name and alias.asname}


MODULES = ("arguments", "errors", "events", "models", "params")


def test_the_list_is_what_type_checkers_see() -> None:
    assert {*payments_async.__all__, *MODULES} == names_for_type_checkers()
    assert len(payments_async.__all__) == len(set(payments_async.__all__))


@pytest.mark.parametrize("name", payments_async.__all__)
def test_every_name_is_there_and_documented(name: str) -> None:
    value = getattr(payments_async, name)
    assert getattr(payments_async, name) is value
    assert name in dir(payments_async)
    if name != "__version__":
        assert value.__name__ == name
        assert value.__doc__


def test_the_homes_of_the_names_are_where_type_checkers_look() -> None:
    for name in payments_async.__all__:
        if name != "__version__":
            value = getattr(payments_async, name)
            assert getattr(importlib.import_module(value.__module__), name) is value


@pytest.mark.parametrize("name", MODULES)
def test_a_public_module_is_an_attribute_in_a_fresh_process(name: str) -> None:
    code = f"import payments_async as p; print(p.{name}.__name__, {name!r} in dir(p))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [f"payments_async.{name}", "True"]
    assert payments_async.__getattr__(name) is importlib.import_module(f"payments_async.{name}")


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'payments_async' has no attribute 'Refund'"):
        _ = payments_async.Refund  # type: ignore[attr-defined] # the point
    with pytest.raises(ImportError):
        exec("from payments_async import Refund")


def test_importing_the_package_loads_no_http_library() -> None:
    code = "import sys, payments_async; print(sorted({'aiohttp', 'cattrs', 'msgspec'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
