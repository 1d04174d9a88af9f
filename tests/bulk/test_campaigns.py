"""The long campaigns: each name is a program, and one that does not exist is refused."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.campaigns import __main__ as campaigns


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The programs that are started; those of `kills` find a breach."""
    programs = list[list[str]]()

    def run(command: list[str]) -> Any:
        programs.append(command[2:])
        return SimpleNamespace(returncode=int("tests.campaigns.kills" in command))

    monkeypatch.setattr("subprocess.run", run)
    return programs


def test_the_campaigns_are_all_programs_beside_the_list() -> None:
    files = Path(campaigns.__file__).parent.glob("[!_]*.py")
    programs = {file.stem for file in files if '__name__ == "__main__"' in file.read_text()}
    assert {name for name, *_ in campaigns.CAMPAIGNS} == programs | {"simulation"}


@pytest.mark.parametrize(
    ("asked", "code"), [([], 1), (["simulation", "walks"], 0), (["pacing"], 0), (["kills"], 1)]
)
def test_the_named_campaigns_are_run_and_a_breach_is_the_exit_code(
    started: list[list[str]], monkeypatch: pytest.MonkeyPatch, asked: list[str], code: int
) -> None:
    monkeypatch.setattr("sys.argv", ["campaigns", *asked])
    assert campaigns.main() == code
    named = {program.rpartition(".")[2] for program, *_ in started}
    assert named == ({*asked} or {name for name, *_ in campaigns.CAMPAIGNS})


def test_a_name_that_is_none_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["campaigns", "kils"])
    with pytest.raises(SystemExit, match="2"):
        campaigns.main()
    assert "there is no campaign kils; there are: asking" in capsys.readouterr().err
