"""Writes the blocking twin of each public module of `payments_async`, and signatures and Args of both.

    python -m tools.mirror            write what is stale
    python -m tools.mirror --check    name what is stale, and exit 1

Signatures and docstrings are slices of the source with a few words changed, so that the result depends on
no Python version and no formatter. Bodies forward to the asynchronous twin, in forms that a type checker
follows. It needs the standard library alone: what it writes need not be importable.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from .arguments import HOMES, typed_dicts, with_arguments
from .faces import EXTRAS, OPENED, SHARED, bulk, face, same_objects
from .module import Module
from .words import SOURCE, TARGET, Unmirrored, header

ROOT = Path(__file__).resolve().parents[2]
BULK = ("bulk/errors", "bulk/sources")
"""Public modules of bulk with the same objects in both packages."""
COPIED = ("bulk/outbox",)
"""Modules whose coroutines await nothing but the caller's own: their twins have the same bodies."""


def modules_with_twins(root: Path) -> list[str]:
    """The modules whose classes and coroutines have a blocking twin."""
    resources = sorted(path.stem for path in (root / SOURCE / "resources").glob("[!_]*.py"))
    return [
        "client",
        *(f"resources/{name}" for name in resources),
        *(f"bulk/{name}" for name in OPENED),
    ]


def documented(root: Path) -> dict[str, str]:
    """{path below `root`: text} of the sources with signatures and Args sections from TypedDicts."""

    def texts(names: Iterable[str]) -> dict[str, str]:
        paths = [f"{SOURCE}/{name}.py" for name in names]
        return {path: (root / path).read_text(encoding="utf-8") for path in paths}

    known = typed_dicts(texts(HOMES))
    found = texts(modules_with_twins(root))
    return {path: with_arguments(path, text, known) for path, text in found.items()}


def mirror(root: Path) -> dict[str, str]:
    """{path below `root`: text} of all generated files."""
    sources = documented(root)

    def read(name: str) -> Module:
        name = f"{name}/__init__" if (root / SOURCE / name).is_dir() else name
        path = f"{SOURCE}/{name}.py"
        return Module(path, sources.get(path) or (root / path).read_text(encoding="utf-8"))

    texts = {f"{TARGET}/{name}.py": read(name).twin() for name in modules_with_twins(root)}
    texts[f"{TARGET}/__init__.py"] = face(read("__init__"))
    below = read("resources")
    texts[f"{TARGET}/resources/__init__.py"] = f"{header(below.path)}\n{below.docstring(below.tree)}\n"
    texts[f"{TARGET}/bulk/__init__.py"] = bulk(read("bulk"))
    texts |= {f"{TARGET}/{name}.py": read(name).copied() for name in COPIED}
    for name in (*SHARED, *EXTRAS, *BULK):
        texts[f"{TARGET}/{name}.py"] = same_objects(read(name))
    return texts


def stale(root: Path, texts: Mapping[str, str]) -> Iterable[str]:
    """The paths whose files differ. Raises Unmirrored for a file without a source."""
    written = {path.relative_to(root).as_posix() for path in (root / TARGET).rglob("[!_]*.py")}
    if orphans := sorted(written - texts.keys()):
        raise Unmirrored(f"nothing in {SOURCE} belongs to {', '.join(orphans)}: remove it")
    for path, text in texts.items():
        file = root / path
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            yield path


def main(arguments: Sequence[str], root: Path = ROOT) -> int:
    """Write what is stale, or with --check only name it; the exit code."""
    try:
        texts = {**documented(root), **mirror(root)}
        found = list(stale(root, texts))
    except Unmirrored as problem:
        print(problem, file=sys.stderr)
        return 1
    for path in found:
        print(f"{path} is stale" if "--check" in arguments else f"{path} written")
        if "--check" not in arguments:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(texts[path], encoding="utf-8")
    return 1 if found and "--check" in arguments else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
