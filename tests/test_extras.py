"""What is told where an extra is missing: one wording, true wherever the package came from."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import payments_async
from payments_async._version import with_extra

ROOT = Path(__file__).parents[1]
PACKAGE = Path(payments_async.__file__).parent


def files() -> Iterator[Path]:
    yield from PACKAGE.rglob("*.py")
    for folder in ("docs", "examples"):
        yield from (ROOT / folder).rglob("*.md")
    yield ROOT / "README.md"


def test_the_extra_is_named() -> None:
    assert with_extra("bulk") == "install payments-sdk with its extra 'bulk'"


def test_nothing_says_that_an_index_has_the_package() -> None:
    told = {
        path
        for path in files()
        if re.search(r"install\S*\s+['\"]?payments-sdk\b(?! with)", path.read_text("utf-8"))
    }
    assert told == set()


def test_every_extra_that_is_named_is_there() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    named = [
        extra
        for path in PACKAGE.rglob("*.py")
        for extra in re.findall(r"with_extra\(['\"](\w+)", path.read_text("utf-8"))
    ]
    assert set(named) >= {"bulk", "cli", "machines", "parquet", "redis"}
    assert set(named) <= set(extras)
