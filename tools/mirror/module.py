"""One module of the source, and the text of its twin."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from itertools import pairwise
from textwrap import indent

from .arguments import implementation
from .bodies import Function, assembly, forwarding, is_entered, made_with_twin, way
from .words import Unmirrored, blocking, header

_COPIED = ("__aenter__", "__aexit__", "__repr__")
"""Methods of a client whose bodies are copied with other words."""


class Module:
    """One module of the source: `path` from the root, with slashes, and its text."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.tree = ast.parse(text)
        self._lines = text.splitlines()
        self._package = path.split("/")[:-1]
        self.name = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")

    def twin(self) -> str:
        """The blocking module's text."""
        classes = "\n".join(line for node in self._classes() for line in self._class(node))
        assigned = [node for node in self.tree.body if set(_targets(node)) & _used(classes)]
        variables = "\n".join(self._slice(node) for node in assigned if not isinstance(node, ast.ClassDef))
        imports = self._imports(_used(f"{variables}\n{classes}"))
        future = "from __future__ import annotations"
        parts = [header(self.path), self.docstring(self.tree), "", future, "", *imports]
        return "\n".join([*parts, *(["", variables] if variables else []), classes, ""])

    def copied(self) -> str:
        """The module's text in words of blocking code: its coroutines await what the caller gives."""
        text = blocking("\n".join(self._lines))
        for node in self.tree.body:
            if isinstance(node, ast.ImportFrom) and node.level:
                there = f"from {'.' * node.level}{node.module} "
                text = text.replace(there, f"from {self._home(node)} ")
        return f"{header(self.path)}\n{text}\n"

    def public_names(self) -> list[str]:
        """Its table of names, or what stands at its top level."""
        names = [name for node in self.tree.body for name in _targets(node)]
        if "_HOMES" in names:
            return [name for of_module in self.constant("_HOMES").values() for name in of_module]
        return [name for name in names if not name.startswith("_")]

    def lists_names(self) -> bool:
        """True if its `__all__` is a list that type checkers read."""
        values = [getattr(node, "value", None) for node in self.tree.body if "__all__" in _targets(node)]
        items = [item for value in values if isinstance(value, ast.List) for item in value.elts]
        return bool(items) and all(isinstance(item, ast.Constant) for item in items)

    def constant(self, name: str) -> Mapping[str, Sequence[str]]:
        """The value of a literal at the top level."""
        node = next(
            node for node in self.tree.body if isinstance(node, ast.Assign) and name in _targets(node)
        )
        value: Mapping[str, Sequence[str]] = ast.literal_eval(node.value)
        return value

    def _classes(self) -> list[ast.ClassDef]:
        classes = [node for node in self.tree.body if isinstance(node, ast.ClassDef)]
        return [node for node in classes if node.name.startswith("Async") or is_entered(node)]

    def _class(self, node: ast.ClassDef) -> Iterator[str]:
        """A class with its twin, its bridge and its methods."""
        decorators = (f"@{ast.unparse(decorator)}" for decorator in node.decorator_list)
        yield from ("", "", *decorators, f"class {blocking(node.name)}:", self.docstring(node))
        yield from self._attributes(node)
        methods = [method for method in node.body if isinstance(method, Function)]
        if is_entered(node):  # `open` makes its objects
            methods = [each for each in methods if each.name != "__init__"]
        if "__init__" not in [method.name for method in methods]:
            yield from ("", *made_with_twin(node))
        runs = {each: implementation(self.path, node, each) for each in methods}
        written = {function.name: method for method, function in runs.items() if function}
        for method in methods:
            if method.name in written:
                if way(node, written[method.name]) is None:
                    yield from ("", *self._implementation(node, written[method.name], method))
            elif method.name == "_assemble":
                yield from ("", *assembly(node.name, method))
            elif method.name.startswith("__") or not method.name.startswith("_"):
                yield from ("", *self._method(node, method))

    def _attributes(self, owner: ast.ClassDef) -> Iterator[str]:
        """The attributes that stand in the class, with the text under each."""
        fields = [
            (field, text)
            for field, text in pairwise(owner.body)
            if isinstance(field, ast.AnnAssign) and not ast.unparse(field.target).startswith("_")
        ]
        yield from [""] if fields else []
        for field, text in fields:
            yield blocking("\n".join(self._lines[field.lineno - 1 : text.end_lineno]))

    def _method(self, owner: ast.ClassDef, method: Function) -> Iterator[str]:
        """Its head up to the end of the docstring, as it stands, and a body of our own."""
        marks = [ast.unparse(decorator) for decorator in method.decorator_list]
        overload = "overload" in marks
        documented = ast.get_docstring(method) is not None
        if not (documented or overload or method.name.startswith("__")):
            raise Unmirrored(f"{self.path}: {owner.name}.{method.name} has no docstring")
        if any(mark.startswith("implemented_by") for mark in marks) and (forwards := way(owner, method)):
            marks = [f"forwarded({forwards})"]
        yield from (f"    @{mark}" for mark in marks)
        last = method.body[0].end_lineno if documented or overload else method.body[0].lineno - 1
        yield blocking("\n".join(self._lines[method.lineno - 1 : last]))
        if method.name in _COPIED and not is_entered(owner):
            body = "\n".join(self._lines[last or 0 : method.end_lineno])
            yield blocking(body.replace("self._", "self._async._"))
        elif not (overload or any(mark.startswith(("implemented_by", "forwarded")) for mark in marks)):
            yield from (indent(line, " " * 8) for line in forwarding(owner, method))

    def _implementation(self, owner: ast.ClassDef, method: Function, runs: Function) -> Iterator[str]:
        """The function that a call of a written signature runs: it hands over what it is given."""
        yield blocking("\n".join(self._lines[runs.lineno - 1 : runs.body[0].lineno - 1]))
        called = copy(runs)
        called.name, called.returns = method.name, method.returns
        yield from (indent(line, " " * 8) for line in forwarding(owner, called))

    def _imports(self, used: set[str]) -> Iterator[str]:
        """The source's imports that are used, then the twin's own."""
        plain = [node for node in self.tree.body if isinstance(node, ast.Import)]
        froms = [node for node in self.tree.body if isinstance(node, ast.ImportFrom)]
        typed = sorted(line for node in self._typed() for line in self._import(node, used))
        used = used | ({"TYPE_CHECKING"} if typed else set())
        yield from (f"import {name.name}" for node in plain for name in node.names if name.name in used)
        yield from (line for node in froms if not node.level for line in self._import(node, used))
        yield ""
        ours = [line for node in froms if node.level for line in self._import(node, used)]
        yield from sorted([self._twins(), *ours])
        bridge = "_batch_bridge import BatchBridge" if "BatchBridge" in used else "_event_loop import Bridge"
        yield ""
        yield from [f"from {'.' * len(self._package)}_blocking_call import forwarded"] * ("forwarded" in used)
        yield f"from {'.' * len(self._package)}{bridge}"
        for node in froms:
            yield from (
                f"from {'.' * node.level}{node.module} import {blocking(name.name)}"
                for name in node.names
                if node.level and name.name.startswith("Async")
            )
        yield from ["", "if TYPE_CHECKING:", *(indent(line, " " * 4) for line in typed)] if typed else []

    def _twins(self) -> str:
        names = [node.name for node in self._classes()]
        named = [name if name.startswith("Async") else f"{name} as Async{name}" for name in names]
        return f"from {self.name} import {', '.join(named)}"

    def _typed(self) -> list[ast.ImportFrom]:
        """The imports that only a type checker sees."""
        blocks = [node for node in self.tree.body if isinstance(node, ast.If)]
        seen = [node for block in blocks if ast.unparse(block.test) == "TYPE_CHECKING" for node in block.body]
        return [node for node in seen if isinstance(node, ast.ImportFrom)]

    def _import(self, node: ast.ImportFrom, used: set[str]) -> Iterator[str]:
        """The statement with the used names that are not twins themselves."""
        names = [blocking(each.name) for each in node.names if not re.match("Async(?!Iter)", each.name)]
        if kept := [name for name in names if name in used]:
            yield f"from {self._home(node)} import {', '.join(kept)}"

    def _home(self, node: ast.ImportFrom) -> str:
        package = self._package[: len(self._package) - node.level + 1] if node.level else []
        return ".".join([*package, *([node.module] if node.module else [])])

    def docstring(self, node: ast.Module | ast.ClassDef) -> str:
        """The docstring with the words of blocking code."""
        if ast.get_docstring(node) is None:
            raise Unmirrored(f"{self.path}: {getattr(node, 'name', 'the module')} has no docstring")
        return blocking(self._slice(node.body[0]))

    def _slice(self, node: ast.stmt) -> str:
        return "\n".join(self._lines[node.lineno - 1 : node.end_lineno])


def _used(text: str) -> set[str]:
    return {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}


def _targets(node: ast.stmt) -> list[str]:
    """The names that a statement defines."""
    if isinstance(node, ast.ClassDef | Function):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return [target.id for target in targets if isinstance(target, ast.Name)]
