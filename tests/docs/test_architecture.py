"""The architecture's paths exist, it names every room of the packages, and no imports go in a circle."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from tests import house
from tests.docs.pages import ROOT, page

ARCHITECTURE = "docs/architecture.md"
PLACES = (ROOT, ROOT / "payments_async", ROOT / "docs")  # links begin in docs/
PATH = re.compile(r"[\w./]*\w(?:/(?![\w.])|\.(?:py|md|json|toml|yml)\b)")
MODULE = re.compile(r"\bpayments_a?sync(?:\.[a-z_]\w*)+")


def paths_of(text: str) -> set[str]:
    return set(PATH.findall(text))


def rooms_of(package: str) -> set[str]:
    """The folders of a package that hold modules, named as the architecture names them."""
    base = ROOT / "payments_async" if package == "payments_async" else ROOT
    found = (file.parent for file in (ROOT / package).rglob("*.py") if file.parent != ROOT / package)
    return {f"{folder.relative_to(base).as_posix()}/" for folder in found}


def test_every_path_and_module_that_the_architecture_names_exists() -> None:
    text = page(ARCHITECTURE)
    named = paths_of(text) | {name.replace(".", "/") for name in MODULE.findall(text)}
    missing = {
        name
        for name in named
        if not any((place / name).exists() or (place / f"{name}.py").exists() for place in PLACES)
    }
    assert not missing


@pytest.mark.parametrize("package", ["payments_async", "payments_sync"])
def test_the_architecture_names_every_room(package: str) -> None:
    assert rooms_of(package) <= paths_of(page(ARCHITECTURE))


def test_the_architecture_names_every_module_at_the_top_and_every_tool() -> None:
    modules = {file.name for file in (ROOT / "payments_async").glob("*.py")}
    tools = {f"tools/{file.parent.name}/" for file in (ROOT / "tools").glob("*/__init__.py")}
    assert modules | tools | {"hatch_build.py"} <= paths_of(page(ARCHITECTURE))


def test_the_architecture_fits_on_its_pages() -> None:
    assert len(page(ARCHITECTURE).splitlines()) <= 200


def test_the_command_line_may_import_no_room_of_bulk_that_is_not_public() -> None:
    contracts = tomllib.loads(page("pyproject.toml"))["tool"]["importlinter"]["contracts"]
    of_cli = [each for each in contracts if each.get("source_modules") == ["payments_async._cli"]]
    forbidden = [name for each in of_cli for name in each["forbidden_modules"]]
    named = {name.removeprefix("payments_async.bulk.").removesuffix(".*") for name in forbidden}
    rooms = {path.stem for path in (ROOT / "payments_async" / "bulk").iterdir()}
    open_to_it = {"errors", "_texts"}
    assert named == {room for room in rooms if not room.startswith("__")} - open_to_it


def test_a_circle_of_imports_is_found() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}
    assert house.circle(graph) == ["a", "b", "c"]


@pytest.mark.parametrize("given", ['"payments_async._a"', '"._a", __name__', "NAMED", "f'{x}', NAMED"])
def test_a_module_that_is_imported_by_a_text_is_found(
    given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(house, "ROOT", tmp_path)
    file = tmp_path / "payments_async" / "b.py"
    file.parent.mkdir()
    file.write_text(f'NAMED = "payments_async._a"\nlogger = "payments_async.c"\nimport_module({given})\n')
    known = frozenset({"payments_async._a", "payments_async.b", "payments_async.c"})
    assert house.imports(file, known) == {"payments_async._a"}
