"""Fixtures of the engines' conformance suite: a scene of the test's own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.engines.harness import Scene
from tests.support.servers import PostgresServer


@pytest.fixture
def scene(postgres: PostgresServer, database: str, tmp_path: Path) -> Iterator[Scene]:
    """A service and an empty database, each behind a line that can be cut."""
    with ExitStack() as stack:
        scene = Scene.in_database(postgres, database, tmp_path, stack)
        yield scene
        print(scene.logs())  # pytest shows it with a failure
