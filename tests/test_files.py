"""Files written whole; and which file system a path lies on, by Linux's list of what is mounted."""

from __future__ import annotations

from pathlib import Path

import pytest

from payments_async import _files
from payments_async._files import AtomicFile, file_system, network_file_system

MOUNTS = """\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
a line of another form
40 22 0:41 / /mnt rw - tmpfs tmpfs rw
41 22 0:42 / /mnt/the\\040share rw,relatime shared:2 - nfs4 host:/share rw
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/june.ledger", "ext4"),
        ("/mnt", "tmpfs"),
        ("/mnt/the share/june.ledger", "nfs4"),
        ("/mnt/the share of mine/june.ledger", "tmpfs"),
    ],
)
def test_a_path_lies_on_the_innermost_mount_and_other_lines_are_passed_over(path: str, kind: str) -> None:
    assert file_system(path, MOUNTS) == kind


def test_only_a_network_file_system_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(MOUNTS, "utf-8")
    monkeypatch.setattr(_files, "MOUNTS", str(mounts))
    assert network_file_system("/mnt/the share/june.ledger") == "nfs4"
    assert network_file_system("/june.ledger") is None


def test_without_mounts_a_file_system_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_files, "MOUNTS", str(tmp_path / "none"))
    assert network_file_system("/mnt/the share/june.ledger") is None


def test_a_text_replaces_a_file_whole_and_leaves_no_part(tmp_path: Path) -> None:
    for text in (b"one", b"two"):
        with AtomicFile(tmp_path / "a") as whole:
            whole.file.write(text)
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("a", "two")]
