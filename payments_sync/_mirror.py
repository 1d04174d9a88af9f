"""Writes the blocking twin of each public module of `payments_async`.

    python payments_sync/_mirror.py            write what is stale
    python payments_sync/_mirror.py --check    name what is stale, and exit 1

Signatures and docstrings are slices of the source with a few words changed, so that the result depends on
no Python version and no formatter. Bodies forward to the asynchronous twin, in forms that a type checker
follows. Run by path, with the standard library alone: what it writes need not be importable.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from textwrap import indent

ROOT = Path(__file__).resolve().parent.parent
SOURCE, TARGET = "payments_async", "payments_sync"
SHARED = ("arguments", "errors", "events", "models", "params")
"""Public modules without a coroutine: their names are the same objects in both packages."""

_WORDS = {
    r"\basync (def|with|for)\b": r"\1",
    r"\bawait ": "",
    r"\bAsyncIterator\b": "Iterator",
    r"\bAsync([A-Z]\w*)": r"\1",
    r"\baclose\b": "close",
    r"\b__a(enter|exit)__": r"__\1__",
}
_COPIED = ("__aenter__", "__aexit__", "__repr__")
"""Methods whose bodies need other words, and nothing else."""

_FACE = '''{header}
"""Collect payments and send payouts, blocking.

    with Payments() as client:
        payout = client.payouts.create(amount=Decimal("50"), currency="XOF", method="mtn_bj",
                                       instrument=Instrument.phone("+22990000000", "BJ"),
                                       reference="invoice-7")

The same names as `payments_async`, with `Payments` for `AsyncPayments`, and the same methods and arguments:
change the import, and drop the `await`. Models, params, errors, limits and events are the same objects.
Public names are loaded when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from {source}._version import __version__ as __version__

if TYPE_CHECKING:
{typed}

{modules}
{clients}

_HOME = {{
{homes}}}
_MODULES = frozenset({{{names}}})

__all__ = ["__version__", *_HOME]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f".{{name}}", __name__)
    if name not in _HOME:
        raise AttributeError(f"module {{__name__!r}} has no attribute {{name!r}}")
    value = getattr(import_module(_HOME[name], __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({{*globals(), *__all__, *_MODULES}})
'''

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Unmirrored(Exception):
    """Something that has no twin, or a twin of nothing; the message says where."""


class Module:
    """One module of the source: `path` from the root, with slashes, and its text."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.tree = ast.parse(text)
        self._lines = text.splitlines()
        self._package = path.split("/")[:-1]

    def twin(self) -> str:
        """The blocking module's text."""
        classes = "\n".join(line for node in self._classes() for line in self._class(node))
        assigned = [node for node in self.tree.body if set(_targets(node)) & _used(classes)]
        variables = "\n".join(self._slice(node) for node in assigned if not isinstance(node, ast.ClassDef))
        imports = self._imports(_used(f"{variables}\n{classes}"))
        future = "from __future__ import annotations"
        parts = [header(self.path), self.docstring(self.tree), "", future, "", *imports]
        return "\n".join([*parts, *(["", variables] if variables else []), classes, ""])

    def public_names(self) -> list[str]:
        """Its `__all__`, or what stands at its top level."""
        names = [name for node in self.tree.body for name in _targets(node)]
        if "__all__" in names:
            return list(self.constant("__all__"))
        return [name for name in names if not name.startswith("_")]

    def constant(self, name: str) -> Mapping[str, Sequence[str]]:
        """The value of a literal at the top level."""
        node = next(
            node for node in self.tree.body if isinstance(node, ast.Assign) and name in _targets(node)
        )
        value: Mapping[str, Sequence[str]] = ast.literal_eval(node.value)
        return value

    def _classes(self) -> list[ast.ClassDef]:
        classes = [node for node in self.tree.body if isinstance(node, ast.ClassDef)]
        return [node for node in classes if node.name.startswith("Async")]

    def _class(self, node: ast.ClassDef) -> Iterator[str]:
        """A class, its ways to the twin and to the loop, and its methods."""
        yield from ("", "", f"class {blocking(node.name)}:", self.docstring(node))
        methods = [method for method in node.body if isinstance(method, Function)]
        if "__init__" not in [method.name for method in methods]:
            yield from ("", f"    def __init__(self, twin: {node.name}, bridge: Bridge) -> None:")
            yield "        self._async, self._bridge = twin, bridge"
        for method in methods:
            if method.name == "_assemble":
                yield from ("", *_assembly(node.name, method))
            elif method.name.startswith("__") or not method.name.startswith("_"):
                yield from ("", *self._method(node, method))

    def _method(self, owner: ast.ClassDef, method: Function) -> Iterator[str]:
        """Its head as it stands, up to the docstring's end, and a body of our own."""
        overload = "overload" in [ast.unparse(decorator) for decorator in method.decorator_list]
        documented = ast.get_docstring(method) is not None
        if not (documented or overload or method.name.startswith("__")):
            raise Unmirrored(f"{self.path}: {owner.name}.{method.name} has no docstring")
        first = min(node.lineno for node in [method, *method.decorator_list])
        last = method.body[0].end_lineno if documented or overload else method.body[0].lineno - 1
        yield blocking("\n".join(self._lines[first - 1 : last]))
        if method.name in _COPIED:
            body = "\n".join(self._lines[last or 0 : method.end_lineno])
            yield blocking(body.replace("self._", "self._async._"))
        elif not overload:
            yield from (indent(line, " " * 8) for line in _forwarding(owner, method))

    def _imports(self, used: set[str]) -> Iterator[str]:
        """What of the source's imports is used, where it lives; then the twin's own."""
        plain = [node for node in self.tree.body if isinstance(node, ast.Import)]
        froms = [node for node in self.tree.body if isinstance(node, ast.ImportFrom)]
        here = self.path.removesuffix(".py").replace("/", ".")
        twins = f"from {here} import {', '.join(node.name for node in self._classes())}"
        yield from (f"import {name.name}" for node in plain for name in node.names if name.name in used)
        yield from (line for node in froms if not node.level for line in self._import(node, used))
        yield ""
        yield from sorted(
            [twins, *(line for node in froms if node.level for line in self._import(node, used))]
        )
        yield f"\nfrom {'.' * len(self._package)}_bridge import Bridge"
        for node in froms:
            yield from (
                f"from {'.' * node.level}{node.module} import {blocking(name.name)}"
                for name in node.names
                if node.level and name.name.startswith("Async")
            )

    def _import(self, node: ast.ImportFrom, used: set[str]) -> Iterator[str]:
        """The statement with the used names that are not twins themselves."""
        names = [blocking(name.name) for name in node.names if not re.match("Async(?!Iter)", name.name)]
        if kept := [name for name in names if name in used]:
            yield f"from {self._home(node)} import {', '.join(kept)}"

    def _home(self, node: ast.ImportFrom) -> str:
        package = self._package[: len(self._package) - node.level + 1] if node.level else []
        return ".".join([*package, *([node.module] if node.module else [])])

    def docstring(self, node: ast.Module | ast.ClassDef) -> str:
        """The docstring as it stands, in the words of the blocking world."""
        if ast.get_docstring(node) is None:
            raise Unmirrored(f"{self.path}: {getattr(node, 'name', 'the module')} has no docstring")
        return blocking(self._slice(node.body[0]))

    def _slice(self, node: ast.stmt) -> str:
        return "\n".join(self._lines[node.lineno - 1 : node.end_lineno])


def blocking(text: str) -> str:
    """Text of the source in the words of the blocking world."""
    for pattern, word in _WORDS.items():
        text = re.sub(pattern, word, text)
    return text


def header(path: str) -> str:
    """The first line of what is written."""
    return f"# From {path}; change that, then run: python {TARGET}/_mirror.py"


def _used(text: str) -> set[str]:
    return {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}


def _targets(node: ast.stmt) -> list[str]:
    """The names that a statement defines."""
    if isinstance(node, ast.ClassDef | Function):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _forwarding(owner: ast.ClassDef, method: Function) -> Iterator[str]:
    """The statements that hand a call to the twin."""
    twin, given = f"self._async.{method.name}", list(_given(method.args))
    returns = ast.unparse(method.returns) if method.returns else ""
    if method.name == "__init__":
        yield "api_key = hidden(api_key)"
        yield _call(f"twin = {owner.name}", given)
        yield "self._assemble(twin, Bridge(twin.aclose))"
    elif method.name == "aclose":
        yield "self._bridge.close()"
    elif isinstance(method, ast.FunctionDef) and returns == "Self":
        yield _call(f"twin = {twin}", given)
        yield "sibling = object.__new__(type(self))"
        yield "sibling._assemble(twin, self._bridge)"
        yield "return sibling"
    elif isinstance(method, ast.FunctionDef):
        yield _call(f"return {twin}", given)
    elif [getattr(node, "name", None) for node in owner.body].count(method.name) > 1:
        yield "# a ParamSpec does not hold overloads"
        yield _call("return self._bridge.call", [f"lambda: {_call(twin, given)}"])
    else:
        way = "iterate" if returns.startswith("AsyncIterator") else "call"
        yield _call(f"return self._bridge.{way}", [twin, *given])


def _call(function: str, arguments: Sequence[str]) -> str:
    """A call, on one line or with a line for each argument."""
    line = f"{function}({', '.join(arguments)})"
    return line if len(line) <= 100 else f"{function}(\n    " + ",\n    ".join(arguments) + ",\n)"


def _given(arguments: ast.arguments) -> Iterator[str]:
    """A signature's own arguments, passed on."""
    yield from (argument.arg for argument in [*arguments.posonlyargs, *arguments.args][1:])
    yield from (f"{argument.arg}={argument.arg}" for argument in arguments.kwonlyargs)
    if arguments.kwarg:
        yield f"**{arguments.kwarg.arg}"


def _assembly(twin: str, method: Function) -> Iterator[str]:
    """The client's resources: each assignment of an `Async` class, with the text under it."""
    yield f"    def _assemble(self, twin: {twin}, bridge: Bridge) -> None:"
    yield "        self._async, self._bridge = twin, bridge"
    for node, below in zip(method.body, [*method.body[1:], None], strict=True):
        found = re.fullmatch(r"self\.(\w+): Async(\w+) = Async\2\(\w+\)", ast.unparse(node))
        if found and isinstance(below, ast.Expr):
            name, cls = found.groups()
            yield f"        self.{name}: {cls} = {cls}(twin.{name}, bridge)"
            yield f'        """{ast.literal_eval(below.value)}"""'


def face(package: Module) -> str:
    """The text of the package: the source's public names, loaded when used, and the blocking client."""
    homes = package.constant("_HOMES")
    clients = [blocking(name) for name in homes["client"]]
    shared = sorted({name for names in homes.values() for name in names} - set(homes["client"]), key=_order)
    entries = [(name, ".client") for name in clients] + [(name, SOURCE) for name in shared]
    return _FACE.format(
        header=header(package.path),
        source=SOURCE,
        typed="\n".join(f"    from {SOURCE} import {name} as {name}" for name in shared),
        modules="\n".join(f"    from . import {name} as {name}" for name in sorted(SHARED)),
        names=", ".join(f'"{name}"' for name in sorted(SHARED)),
        clients="\n".join(f"    from .client import {name} as {name}" for name in clients),
        homes="".join(f'    "{name}": "{home}",\n' for name, home in entries),
    )


def same_objects(source: Module, name: str) -> str:
    """The text of a module that shows the names of another."""
    lines = [header(source.path), f'"""The same objects as in `{SOURCE}.{name}`."""', ""]
    names = sorted(source.public_names(), key=_order)
    return "\n".join([*lines, *(f"from {SOURCE}.{name} import {each} as {each}" for each in names), ""])


def _order(name: str) -> tuple[int, str]:
    """As sorted imports stand: constants, classes, the rest."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2), name.lower()


def mirror(root: Path) -> dict[str, str]:
    """{path below `root`: text} of everything that is written."""

    def read(path: str) -> Module:
        return Module(path, (root / path).read_text(encoding="utf-8"))

    resources = sorted((root / SOURCE / "resources").glob("[!_]*.py"))
    twins = [f"{SOURCE}/client.py", *(path.relative_to(root).as_posix() for path in resources)]
    texts = {path.replace(SOURCE, TARGET, 1): read(path).twin() for path in twins}
    texts[f"{TARGET}/__init__.py"] = face(read(f"{SOURCE}/__init__.py"))
    group = read(f"{SOURCE}/resources/__init__.py")
    texts[f"{TARGET}/resources/__init__.py"] = f"{header(group.path)}\n{group.docstring(group.tree)}\n"
    for name in SHARED:
        package = (root / SOURCE / name).is_dir()
        module = read(f"{SOURCE}/{name}/__init__.py" if package else f"{SOURCE}/{name}.py")
        texts[f"{TARGET}/{name}.py"] = same_objects(module, name)
    return texts


def stale(root: Path, texts: Mapping[str, str]) -> Iterable[str]:
    """The paths whose files differ. Raises Unmirrored for a file that has no source any more."""
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
        texts = mirror(root)
        found = list(stale(root, texts))
    except Unmirrored as problem:
        print(problem, file=sys.stderr)
        return 1
    for path in found:
        print(f"{path} is stale" if "--check" in arguments else f"{path} written")
        if "--check" not in arguments:
            (root / path).parent.mkdir(exist_ok=True)
            (root / path).write_text(texts[path], encoding="utf-8")
    return 1 if found and "--check" in arguments else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
