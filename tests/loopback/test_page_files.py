"""The files of pages, which are read once."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from payments_async._loopback.page_files import PageFiles


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in (("templates/page.html", '{{ asset("a.css") }}'), ("assets/a.css", "a {}")):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(text)
    return tmp_path


def files_of(folder: Path) -> PageFiles:
    return PageFiles(folder, "/own/", {}, {})


def test_files_replaced_under_a_running_sandbox_change_no_page(folder: Path) -> None:
    files = files_of(folder)
    for file in folder.glob("*/*"):
        file.write_text("{{ of.another.version }}")
    assert files.asset_address("a.css") in files.render("page.html", {})
    asset = files.asset("a.css")
    assert asset is not None
    assert asset[1] == b"a {}"
    assert files_of(folder).asset_address("a.css") != files.asset_address("a.css")


def test_without_jinja2_the_page_says_what_to_install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = files_of(folder)
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(ModuleNotFoundError, match=r'needs jinja2: pip install "payments-sdk\[sandbox\]"$'):
        files.render("page.html", {})
    monkeypatch.undo()
    assert files.render("page.html", {})
