"""A scene for each test of an engine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engines.harness import Scene


@pytest.fixture
def scene(database: str, tmp_path: Path) -> Iterator[Scene]:
    scene = Scene.begin(database, tmp_path)
    yield scene
    scene.end()
    for program in scene.programs:  # pytest shows it with a failure
        print(program.log.read_text(errors="replace"))
