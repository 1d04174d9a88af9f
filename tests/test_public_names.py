"""Every public name can be imported from the path that users know."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

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


def test_the_list_is_that_of_the_packages() -> None:
    for module in {module for module, _ in names()}:
        public = set(getattr(import_module(module), "__all__", ()))
        assert public <= {name for where, name in names() if where == module} | {"__version__"}, module
