"""Every public name can be imported from the path that users know."""

from __future__ import annotations

import inspect
from importlib import import_module
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from payments_async.bulk import BatchReport

LISTED = Path(__file__).with_name("public_names.txt")


def names() -> list[tuple[str, str]]:
    """Module and name, of each line that begins with blanks under its module's."""
    found, module = [], ""
    for line in LISTED.read_text(encoding="utf-8").splitlines():
        if line.startswith(" "):
            found += [(module, name) for name in line.split()]
        elif not line.startswith("#"):
            module = line
    return found


@pytest.mark.parametrize(("module", "name"), names())
def test_a_public_name_is_where_it_was(module: str, name: str) -> None:
    assert hasattr(import_module(module), name)


@pytest.mark.parametrize(
    "name",
    ["arguments", "errors", "events", "guard", "models", "params", "bulk.errors", "bulk.sources"],
)
def test_modules_without_a_coroutine_show_the_same_objects_in_both_packages(name: str) -> None:
    blocking, awaited = import_module(f"payments_sync.{name}"), import_module(f"payments_async.{name}")
    public = [each for each in dir(blocking) if not each.startswith("_")]
    assert public
    for each in public:
        assert getattr(blocking, each) is getattr(awaited, each), each


def test_the_list_is_that_of_the_packages() -> None:
    for module in {module for module, _ in names()}:
        public = set(getattr(import_module(module), "__all__", ()))
        assert public <= {name for where, name in names() if where == module} | {"__version__"}, module


def described(value: Any) -> list[Any]:
    """A public object, and what a class has: attributes of its own, its constructor, its methods."""
    if not inspect.isclass(value):
        return [value]
    parts = [part for name, part in inspect.getmembers_static(value) if name == "__init__" or name[0] != "_"]
    return [value, *(getattr(part, "fget", None) or getattr(part, "__func__", part) for part in parts)]


@pytest.mark.parametrize("module", sorted({module for module, _ in names()}))
def test_the_types_of_everything_public_can_be_asked_for(module: str) -> None:
    public = [getattr(import_module(module), name) for where, name in names() if where == module]
    parts = [part for value in public for part in described(value)]
    parts += [inner for part in parts if inspect.isclass(part) for inner in described(part)]  # the resources
    found = [part for part in parts if inspect.isclass(part) or inspect.isfunction(part)]
    for part in found:
        if part is not BatchReport.__init__:  # which attrs makes before there is a Certificate
            get_type_hints(part)
