"""The engines' conformance suite: a scene for each test, and at the end which engine has stood what."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.engines.harness import CASES, Scene
from tests.support.servers import PostgresServer


@pytest.fixture
def scene(postgres: PostgresServer, database: str, tmp_path: Path) -> Iterator[Scene]:
    """A service and an empty database, each behind a line that can be cut."""
    with ExitStack() as stack:
        scene = Scene.in_database(postgres, database, tmp_path, stack)
        yield scene
        print(scene.logs())  # pytest shows it with a failure


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        for mark in item.iter_markers("case"):
            engine = item.path.stem.removeprefix("test_").replace("_", " ")
            item.user_properties += [(engine, CASES.index(case)) for case in mark.args]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the conformance table, as docs/machines.md has it."""
    reports = [
        report for kind in ("passed", "failed", "error") for report in terminalreporter.stats.get(kind, ())
    ]
    cells: dict[str, list[str]] = {}
    for report in reports:
        for engine, case in report.user_properties:
            row = cells.setdefault(engine, ["–"] * len(CASES))
            row[case] = "✗" if report.failed or row[case] == "✗" else "✓"
    for row in (("case", *cells), ("---", *["---"] * len(cells)), *zip(CASES, *cells.values(), strict=True)):
        terminalreporter.write_line(f"| {' | '.join(row)} |")
