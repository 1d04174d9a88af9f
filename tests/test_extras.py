"""What is said where an extra is missing: all that is missing, and the one command that installs it."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import payments_async
from payments_async import bulk
from payments_async._extras import EXTRAS, install_command, missing_libraries, needs
from tests.docs.pages import first_cells, section

ROOT = Path(__file__).parents[1]
PACKAGE = Path(payments_async.__file__).parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]

BROUGHT = {"sqlalchemy[asyncio]": ("sqlalchemy", "greenlet")}
"""The libraries that a requirement brings besides."""


def test_the_extras_are_those_of_the_project() -> None:
    extras = PROJECT["optional-dependencies"].items()
    named = {
        extra: [re.split("(?:-api)?>", each)[0] for each in requirements] for extra, requirements in extras
    }
    declared = {
        extra: tuple(
            name
            for each in libraries
            if not each.startswith(PROJECT["name"])
            for name in BROUGHT.get(each, (each.partition("[")[0],))
        )
        for extra, libraries in named.items()
    }
    assert declared.pop("all") == ()
    assert declared == EXTRAS


def test_every_extra_that_is_named_is_there() -> None:
    named = [
        extra
        for path in PACKAGE.rglob("*.py")
        for call in re.findall(r"needs\(\"[^\"]+\"((?:, \"\w+\")+)\)", path.read_text("utf-8"))
        for extra in re.findall(r"\w+", call)
    ]
    assert named
    assert set(named) <= set(EXTRAS)


def test_the_readme_has_a_row_for_each_extra() -> None:
    rows = [cell.strip("`") for cell in first_cells(section("README.md", "Install"))]
    assert [row for row in rows if row in PROJECT["optional-dependencies"]] == [
        *PROJECT["optional-dependencies"]
    ]


def test_all_that_is_missing_is_named_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rich", None)
    monkeypatch.setitem(sys.modules, "babel", None)
    monkeypatch.setitem(sys.modules, "segno", None)
    assert needs("it needs", "cli", "sandbox", "bulk") == (
        'it needs rich, babel, segno: pip install "payments-sdk[cli,sandbox]"'
    )


def test_a_library_that_an_import_hook_hides_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    class Hidden:
        @staticmethod
        def find_spec(name: str, *_: object) -> None:
            raise ModuleNotFoundError(name)

    monkeypatch.delitem(sys.modules, "redis", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Hidden])
    assert missing_libraries(["redis"]) == ["redis"]


def test_a_library_that_is_there_and_broken_is_not_called_missing() -> None:
    try:
        raise ImportError("cannot import name 'x'")
    except ImportError:
        said = needs("it needs", "redis")
    why = "which is installed and cannot be imported (cannot import name 'x')"
    assert said == f"it needs redis, {why}: {install_command(['redis'])}"


@pytest.mark.parametrize("package", ["payments_async", "payments_sync"])
def test_an_outbox_without_sqlalchemy_says_what_to_install(package: str) -> None:
    code = (
        "import sys; sys.modules['sqlalchemy'] = None\n"
        "for name in ('Outbox', 'metadata'):\n"
        f"    try: exec('from {package}.bulk import ' + name)\n"
        "    except ImportError as error: print(error)"
    )
    said = subprocess.check_output([sys.executable, "-c", code], text=True)
    assert said == f"a ledger needs sqlalchemy: {install_command(['bulk'])}\n" * 2


@pytest.mark.parametrize(
    ("missing", "is_named"), [("sqlalchemy", True), ("sqlalchemy.sql", True), ("x", False)]
)
def test_a_missing_library_is_named(missing: str, is_named: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def import_module(*_: object) -> None:
        raise ModuleNotFoundError(f"No module named {missing!r}", name=missing)

    monkeypatch.setattr(bulk, "import_module", import_module)
    monkeypatch.delitem(vars(bulk), "Outbox", raising=False)
    monkeypatch.setitem(sys.modules, "sqlalchemy", None)
    with pytest.raises(ImportError) as caught:
        _ = bulk.Outbox
    assert (str(caught.value) == needs("a ledger needs", "bulk")) is is_named
    assert isinstance(caught.value, ModuleNotFoundError) is not is_named
