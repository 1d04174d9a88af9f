"""The size and shape of the code: `python -m tests.house`.

Files, folders, lines, import circles, class names that are defined twice, and the files that one warm
`payouts.create` enters. `docs/architecture.md` says what they should be.
"""

from __future__ import annotations

import ast
import asyncio
import os
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SHIPPED = ("payments_async", "payments_sync")
PARTS = ("bulk", "sandbox", "webhooks", "testing", "cli")
"""Sub-packages in which a class name may be defined once, beside that of another part."""
SMALL = 60
"""Lines of a file that is small."""


def sources(*folders: str) -> list[Path]:
    """The Python files below some folders."""
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def module_of(path: Path) -> str:
    """The dotted name of a file."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def lines_of(path: Path) -> int:
    """The lines of a file."""
    return len(path.read_text(encoding="utf-8").splitlines())


def imports(path: Path, known: frozenset[str]) -> set[str]:
    """The modules of ours that a file imports, anywhere in it: at its top, for types, inside a function."""
    package = module_of(path) if path.name == "__init__.py" else module_of(path).rpartition(".")[0]
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            found.update(_targets(node, package, known))
    return (found & known) - {module_of(path)}


def _targets(node: ast.ImportFrom, package: str, known: frozenset[str]) -> Iterator[str]:
    base = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
    source = ".".join([*base, *([node.module] if node.module else [])])
    for alias in node.names:
        name = f"{source}.{alias.name}"
        yield name if name in known else source


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Groups of modules that import each other, by Tarjan's algorithm."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in graph[node]:
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            place = stack.index(node)
            group = stack[place:]
            del stack[place:]
            if len(group) > 1:
                found.append(sorted(group))

    sys.setrecursionlimit(10_000)
    for node in graph:
        if node not in index:
            visit(node)
    return found


def import_circles() -> list[list[str]]:
    """Circles of the shipped code."""
    paths = sources(*SHIPPED)
    known = frozenset(map(module_of, paths))
    return circles({module_of(path): imports(path, known) for path in paths})


def part_of(path: Path) -> str:
    """The part of the project that a file belongs to: a name should mean one thing in each."""
    top, *rest = path.relative_to(ROOT).parts
    return f"{top}/{rest[0]}" if top == "payments_async" and rest[0] in PARTS else top


def doubled_classes() -> dict[str, list[str]]:
    """Class names that are defined more than once within a part."""
    places = defaultdict(list)
    for path in sources(*SHIPPED):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                places[part_of(path), node.name].append(module_of(path))
    return {f"{part}: {name}": homes for (part, name), homes in places.items() if len(homes) > 1}


def one_create() -> list[str]:
    """The files of ours that one warm `payouts.create` enters, call by call, over a stubbed network."""
    from benchmarks import inside
    from benchmarks.bodies import arguments

    client, entered = inside.client(), list[str]()

    def note(frame: FrameType, event: str, _: Any) -> None:
        name = frame.f_code.co_filename
        if event == "call" and any(f"{os.sep}{top}{os.sep}" in name for top in SHIPPED):
            entered.append(name)

    async def calls() -> None:
        for _ in range(20):
            await client.payouts.create(**arguments())
        sys.setprofile(note)
        await client.payouts.create(**arguments())
        sys.setprofile(None)

    asyncio.run(calls())
    return entered


def changes(places: Iterable[str]) -> int:
    """How often a walk goes on in another place."""
    walked = list(places)
    return sum(before != after for before, after in pairwise(walked))


def fullest(paths: Iterable[Path]) -> tuple[str, int]:
    """The folder with most modules in it, and their number; `__init__` is the folder's own."""
    counts = Counter(path.parent for path in paths if path.name != "__init__.py")
    folder, number = counts.most_common(1)[0]
    return folder.relative_to(ROOT).as_posix(), number


def figures() -> Iterator[tuple[str, str]]:
    """What is measured, and the figure."""
    shipped, tests = sources(*SHIPPED), sources("tests")
    flat = [path for path in (ROOT / "payments_async").glob("_*.py") if path.name != "__init__.py"]
    entered = one_create()
    folders = [os.path.dirname(name) for name in entered]
    yield "private modules flat in payments_async/", str(len(flat))
    yield "the fullest folder", "{}: {}".format(*fullest(shipped))
    yield "shipped files", str(len(shipped))
    yield f"shipped files of at most {SMALL} lines", str(sum(lines_of(path) <= SMALL for path in shipped))
    yield "import circles", "; ".join(" ".join(group) for group in import_circles()) or "0"
    yield "class names defined twice", "; ".join(sorted(doubled_classes())) or "0"
    yield "shipped lines", f"{sum(map(lines_of, shipped)):,}"
    yield "test lines", f"{sum(map(lines_of, tests)):,}"
    yield "files that one warm payouts.create enters", str(len(set(entered)))
    yield "folders that it enters, and moves between them", f"{len(set(folders))}, {changes(folders)}"


def main() -> None:
    """Print a table."""
    for what, figure in figures():
        print(f"{what:48} {figure}")


if __name__ == "__main__":
    main()
