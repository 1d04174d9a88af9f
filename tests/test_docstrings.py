"""Docstrings name what exists: the exceptions after `Raises`."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FILES = sorted((ROOT / "payments_async").rglob("*.py"))
RAISED = re.compile(r"Raises:?\s+`?([A-Z]\w+)(?:(?:,| or|,? and)\s+`?([A-Z]\w+))?")


def classes() -> set[str]:
    """Every class of the package, and of the libraries that its docstrings may name."""
    trees = (ast.parse(file.read_text(encoding="utf-8")) for file in FILES)
    found = {node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    return found | set(vars(builtins)) | {"CancelledError", "ValidationError"}


def raised(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            for names in RAISED.findall(ast.get_docstring(node) or ""):
                yield from filter(None, names)


def test_docstrings_name_exceptions_that_exist() -> None:
    known = classes()
    unknown = {(file.relative_to(ROOT).as_posix(), name) for file in FILES for name in raised(file)}
    assert sorted(place for place in unknown if place[1] not in known) == []
