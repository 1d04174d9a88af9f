"""The command in this process, at a sandbox over TCP."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from payments_async.sandbox import Sandbox, SandboxLimits
from tests.support.payout_command import Here, environment_of, payouts_file


@pytest.fixture
def here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Here]:
    """`payments payouts` in a folder with a file of four payouts, june.csv."""
    payouts_file(tmp_path, 4)
    monkeypatch.chdir(tmp_path)
    with Sandbox(limits=SandboxLimits.off()) as sandbox:
        for name, value in environment_of(sandbox).items():
            monkeypatch.setenv(name, value)
        yield Here(sandbox, tmp_path, capsys)
