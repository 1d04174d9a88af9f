"""What a release publishes is complete, says what the project says, and is built the same twice.

python -m tools.release.artifacts DIST AGAIN    # two folders, each with a wheel and a source distribution
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = SETTINGS["project"]
NAME = f"payments_sdk-{PROJECT['version']}"
PACKAGES = ("payments_async", "payments_sync")
ADDED = {"PKG-INFO"}
"""Files of a source distribution that git does not have."""


def wheel_names(folder: Path) -> list[str]:
    """The files of the wheel."""
    with zipfile.ZipFile(folder / f"{NAME}-py3-none-any.whl") as wheel:
        return wheel.namelist()


def from_wheel(folder: Path, name: str) -> str:
    """A file of the wheel's metadata."""
    with zipfile.ZipFile(folder / f"{NAME}-py3-none-any.whl") as wheel:
        return wheel.read(f"{NAME}.dist-info/{name}").decode()


def tracked(*paths: str) -> set[str]:
    """The files that git has below these paths."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--", *paths], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return {name for name in listed.stdout.split("\0") if (ROOT / name).is_file()}


def equal_builds(first: Path, second: Path) -> Iterator[str]:
    """Files that differ between two builds."""
    for path in sorted(first.glob("payments_sdk-*")):
        hashes = {hashlib.sha256((folder / path.name).read_bytes()).hexdigest() for folder in (first, second)}
        if len(hashes) > 1:
            yield f"{path.name}: two builds differ"


def wheel_contents(folder: Path) -> Iterator[str]:
    """What the wheel has too much or too little."""
    information = f"{NAME}.dist-info"
    own = {
        "METADATA",
        "WHEEL",
        "RECORD",
        "entry_points.txt",
        "licenses/LICENSE",
        "sboms/payments-sdk.cdx.json",
    }
    wanted = tracked(*PACKAGES) | {f"{information}/{name}" for name in own}
    yield from compared("wheel", set(wheel_names(folder)), wanted)


def source_contents(folder: Path) -> Iterator[str]:
    """What the source distribution has too much or too little: all that git has."""
    with tarfile.open(folder / f"{NAME}.tar.gz") as archive:
        found = {member.name.removeprefix(f"{NAME}/") for member in archive if member.isfile()}
    yield from compared("sdist", found, tracked() | ADDED)


def compared(what: str, found: set[str], wanted: set[str]) -> Iterator[str]:
    """The differences of two sets of files."""
    yield from (f"{what}: {name} is missing" for name in sorted(wanted - found))
    yield from (f"{what}: {name} does not belong there" for name in sorted(found - wanted))


def metadata(folder: Path) -> Iterator[str]:
    """What the wheel's metadata says otherwise than the project."""
    from packaging.metadata import Metadata

    said = Metadata.from_email(from_wheel(folder, "METADATA"), validate=True)
    for field, value, wanted in (
        ("Name", said.name, PROJECT["name"]),
        ("Version", str(said.version), PROJECT["version"]),
        ("License-Expression", said.license_expression, PROJECT["license"]),
        ("Requires-Python", str(said.requires_python), PROJECT["requires-python"]),
        ("Provides-Extra", sorted(said.provides_extra or ()), sorted(PROJECT["optional-dependencies"])),
    ):
        if value != wanted:
            yield f"METADATA: {field} is {value}, not {wanted}"
    relative = re.findall(r"\]\((?![a-z]+:|#)[^)]*\)", said.description or "")
    yield from (
        f"METADATA: the description has a link that an index cannot follow: {link}" for link in relative
    )


def builder(folder: Path) -> Iterator[str]:
    """A wheel that was built by something else than the pinned builder: its bytes are no one else's."""
    (pinned,) = SETTINGS["build-system"]["requires"]
    wanted = "Generator: " + pinned.replace("==", " ")
    if wanted not in from_wheel(folder, "WHEEL").splitlines():
        yield f"WHEEL: no line {wanted!r}"


def versions(folder: Path) -> Iterator[str]:
    """The places that disagree on the version, and a changelog without its date."""
    version = re.escape(PROJECT["version"])
    for name, pattern in (
        ("payments_async/_version.py", rf'^__version__ = "{version}"$'),
        ("CHANGELOG.md", rf"^## {version} \(\d{{4}}-\d\d-\d\d\)$"),
    ):
        if not re.search(pattern, (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE):
            yield f"{name}: no line like {pattern}"


def bill(folder: Path) -> Iterator[str]:
    """What is wrong with the bill of materials."""
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    wrong = JsonStrictValidator(SchemaVersion.V1_6).validate_str(
        from_wheel(folder, "sboms/payments-sdk.cdx.json")
    )
    if wrong is not None:
        yield f"bill of materials: {wrong}"


def main(first: str, second: str) -> int:
    """Print what is wrong. The exit code is 1 if anything is."""
    folder = Path(first)
    checks = (wheel_contents, source_contents, metadata, builder, versions, bill)
    wrong = [*equal_builds(folder, Path(second)), *(each for check in checks for each in check(folder))]
    print("\n".join(wrong) or f"{NAME}: {len(wheel_names(folder))} files in the wheel; two builds are equal")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
