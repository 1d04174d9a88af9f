"""Without a browser the tests of this folder are skipped in sight, and fail in CI."""

from __future__ import annotations

import pytest

from tests.browser.conftest import find_chromium


def test_the_browser_is_the_one_named_or_else_the_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHROMIUM", "/opt/browser")
    assert find_chromium() == "/opt/browser"
    monkeypatch.delenv("CHROMIUM")
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    assert find_chromium() == "/usr/bin/chromium"


@pytest.mark.parametrize(
    ("ci", "ends"),
    [("true", pytest.fail.Exception), ("", pytest.skip.Exception), (None, pytest.skip.Exception)],
)
def test_none_is_a_failure_in_ci_and_a_skip_elsewhere(
    monkeypatch: pytest.MonkeyPatch, ci: str | None, ends: type[BaseException]
) -> None:
    monkeypatch.delenv("CHROMIUM", raising=False)
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setattr("shutil.which", lambda _: None)
    if ci is not None:
        monkeypatch.setenv("CI", ci)
    with pytest.raises(ends, match="install Debian's `chromium`, or set CHROMIUM"):
        find_chromium()
