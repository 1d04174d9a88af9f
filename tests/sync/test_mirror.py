"""The blocking twin is what its generator writes, and the generator sees when it is not."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sync.scenes import ROOT
from tools.mirror import __main__ as mirror


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Both packages, to be changed at will."""
    for package in ("payments_async", "payments_sync"):
        for path in (ROOT / package).rglob("*.py"):
            target = tmp_path / path.relative_to(ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)
    return tmp_path


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def test_the_twin_in_the_tree_is_fresh() -> None:
    command = [sys.executable, "-S", "-m", "tools.mirror", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_changed_source_is_named_until_the_twin_is_written(
    copy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edit(copy / "payments_async/resources/payouts.py", "Send money.", "Send much money.")
    edit(copy / "payments_async/resources/payouts.py", "deadline: float = 900.0", "deadline: float = 60.0")
    stale = "payments_sync/resources/payouts.py"
    assert mirror.main(["--check"], copy) == 1
    assert capsys.readouterr().out == f"{stale} is stale\n"
    assert mirror.main([], copy) == 0
    assert capsys.readouterr().out == f"{stale} written\n"
    assert mirror.main(["--check"], copy) == 0
    text = (copy / stale).read_text(encoding="utf-8")
    assert "Send much money." in text
    assert "deadline: float = 60.0" in text


def test_everything_can_be_written_anew(copy: Path) -> None:
    before = mirror.mirror(copy)
    shutil.rmtree(copy / "payments_sync" / "resources")
    for path in before:
        (copy / path).unlink(missing_ok=True)
    assert mirror.main([], copy) == 0
    assert {path: (ROOT / path).read_text(encoding="utf-8") for path in before} == before
    assert mirror.main(["--check"], copy) == 0


def test_a_new_name_appears_in_the_package(copy: Path) -> None:
    edit(copy / "payments_async/__init__.py", '("LimitSnapshot", "RateLimits")', '("Kilo", "RateLimits")')
    texts = mirror.mirror(copy)
    assert "from payments_async import Kilo as Kilo\n" in texts["payments_sync/__init__.py"]
    assert "LimitSnapshot" not in texts["payments_sync/__init__.py"]


def test_a_twin_without_a_source_is_refused(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (copy / "payments_sync/resources/refunds.py").write_text("", encoding="utf-8")
    assert mirror.main([], copy) == 1
    assert "payments_sync/resources/refunds.py: remove it" in capsys.readouterr().err


def test_a_new_argument_is_described_on_both_surfaces(copy: Path) -> None:
    edit(copy / "payments_async/arguments.py", '"""Attempts after the first."""', '"""Aware, stop. Soon."""')
    assert mirror.main([], copy) == 0
    for package in ("payments_async", "payments_sync"):
        text = (copy / package / "resources/payment_intents.py").read_text(encoding="utf-8")
        assert "            max_retries: aware, stop. Soon.\n" in text
    assert mirror.main(["--check"], copy) == 0


def test_a_new_argument_stands_in_the_signatures_of_both_surfaces(copy: Path) -> None:
    below = '    """ISO 4217, three uppercase letters."""\n'
    edit(copy / "payments_async/arguments.py", below, f"{below}    urgent: Required[bool]\n{below}")
    assert mirror.main([], copy) == 0
    for package in ("payments_async", "payments_sync"):
        text = (copy / package / "resources/checkouts.py").read_text(encoding="utf-8")
        assert text.count("amount: Money, currency: str, urgent: bool,") == 2
    assert mirror.main(["--check"], copy) == 0


def test_a_signature_is_written_out_from_its_own_arguments(copy: Path) -> None:
    methods = copy / "payments_async/resources/methods.py"
    before = methods.read_text(encoding="utf-8")
    head = before.partition("    async def status(")[2].partition('        """')[0]
    edit(methods, head, "self, method_code: str, country_code: str) -> models.MethodStatus:\n")
    assert mirror.main([], copy) == 0
    assert methods.read_text(encoding="utf-8") == before


PAYOUTS, METHODS, ARGUMENTS = "resources/payouts.py", "resources/methods.py", "arguments.py"
MUTE = "\n    async def mute(self) -> None:\n        return None\n\n    async def status("
OPTIONS = "options: Unpack[arguments.ReadOptions]\n    ) -> models.MethodStatus:\n"


@pytest.mark.parametrize(
    ("file", "old", "new", "problem"),
    [
        (PAYOUTS, '"""`client.payouts`."""', "", "has no docstring"),
        (PAYOUTS, '"""Payouts: money sent to an instrument."""', "", "has no docstring"),
        (METHODS, "\n    async def status(", MUTE, "AsyncMethods.mute has no docstring"),
        (METHODS, "by(_status)", "by(_state)", "status names _state, which is not beside it"),
        (
            METHODS,
            OPTIONS,
            f'{OPTIONS}        """Health."""\n',
            "the arguments of _status are not written out",
        ),
        (METHODS, "Args:", "Takes:", "status has no Args section"),
        (ARGUMENTS, '    """A payout method code."""\n', "", "_PayoutFilters.method has no docstring"),
    ],
)
def test_what_lacks_words_or_cannot_be_written_out_is_refused(
    copy: Path, capsys: pytest.CaptureFixture[str], file: str, old: str, new: str, problem: str
) -> None:
    edit(copy / "payments_async" / file, old, new)
    assert mirror.main([], copy) == 1
    shown = capsys.readouterr().err
    assert shown.startswith(f"payments_async/{file}: ")
    assert problem in shown
