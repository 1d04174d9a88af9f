"""The signatures and Args sections of methods, written from TypedDicts.

A written signature is decorated with the function that a call runs: `@implemented_by(_create)`. That one
takes `**arguments: Unpack[...]`, which names the TypedDict.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from itertools import chain, pairwise
from textwrap import wrap

from .bodies import Function
from .words import Unmirrored

HOMES = ("arguments", "bulk/_options")
"""The modules with TypedDicts."""
WIDTH = 110
_TAKES = re.compile(r"\bthe arguments of `\w+`")
"""The docstring of a method that names another one, whose Args section has its arguments too."""
Keys = Mapping[str, tuple[str, str]]
"""The keys of a TypedDict, with their types and texts."""


def typed_dicts(modules: Mapping[str, str]) -> dict[str, Keys]:
    """The TypedDicts of modules, given as {path: text}, by name."""
    found: dict[str, Keys] = {}
    for path, text in modules.items():
        for node in ast.parse(text).body:
            bases = [ast.unparse(base) for base in node.bases] if isinstance(node, ast.ClassDef) else []
            if isinstance(node, ast.ClassDef) and {"TypedDict", *found}.intersection(bases):
                keys = [
                    *chain.from_iterable(found.get(base, {}).items() for base in bases),
                    *_own(path, node),
                ]
                found[node.name] = dict(keys)
    return found


def _own(path: str, node: ast.ClassDef) -> Iterator[tuple[str, tuple[str, str]]]:
    """The fields that a class itself defines, with their types and the text under each."""
    for field, below in pairwise([*node.body, None]):
        if isinstance(field, ast.AnnAssign):
            name = ast.unparse(field.target)
            if not isinstance(below, ast.Expr):
                raise Unmirrored(f"{path}: {node.name}.{name} has no docstring")
            yield name, (ast.unparse(field.annotation), ast.literal_eval(below.value))


def implementation(path: str, owner: ast.AST, method: Function) -> Function | None:
    """The function that a call of a written signature runs; None for a method with a body of its own."""
    marks = " ".join(ast.unparse(mark) for mark in method.decorator_list)
    found = re.search(r"\bimplemented_by\((\w+)\)", marks)
    if found is None:
        return None
    for node in ast.iter_child_nodes(owner):
        if isinstance(node, Function) and node.name == found[1]:
            return node
    raise Unmirrored(f"{path}: {method.name} names {found[1]}, which is not beside it")


def with_arguments(path: str, text: str, known: Mapping[str, Keys]) -> str:
    """A module's text, in which signatures and Args sections name the keys of their TypedDict."""
    lines = text.splitlines()
    for method, keys in sorted(_written_out(path, text, known), key=lambda each: -each[0].lineno):
        docstring = ast.get_docstring(method)
        documented = docstring is not None  # an overload is not, and ends after its head
        if docstring is not None and not _TAKES.search(docstring):
            first, last = method.body[0].lineno - 1, method.body[0].end_lineno or 0
            section = _section(lines[first:last])
            if section is None:
                raise Unmirrored(f"{path}: {method.name} has no Args section")
            begin, end = (first + place for place in section)
            explicit = {name for name, _ in _parameters(method)} - keys.keys()
            indent = " " * (method.col_offset + 8)
            kept = _kept(lines[begin:end], indent, explicit)
            lines[begin:end] = [*kept, *_entries(keys, indent)]
        ends = method.body[0].lineno - 1 if documented else method.end_lineno
        lines[method.lineno - 1 : ends] = _signature(method, keys, "" if documented else " ...")
    return "\n".join([*lines, ""])


def _written_out(path: str, text: str, known: Mapping[str, Keys]) -> Iterator[tuple[Function, Keys]]:
    """The written signatures of a module, overloads too, with the keys of their TypedDicts."""
    for owner in ast.walk(ast.parse(text)):
        methods = [node for node in ast.iter_child_nodes(owner) if isinstance(node, Function)]
        for method in methods:
            if runs := implementation(path, owner, method):
                hint = ast.unparse(runs.args.kwarg.annotation or runs) if runs.args.kwarg else ""
                keys = known[hint.removeprefix("Unpack[").removesuffix("]").rpartition(".")[2]]
                yield from ((each, keys) for each in methods if each.name == method.name)
            elif ast.get_docstring(method) and method.args.kwarg and "Unpack[" in ast.unparse(method.args):
                raise Unmirrored(f"{path}: the arguments of {method.name} are not written out")


def _signature(method: Function, keys: Keys, after: str) -> Iterator[str]:
    """The lines of a signature: the method's own parameters, then the keys, as many as fit on a line."""
    indent = " " * method.col_offset
    kind = "async def" if isinstance(method, ast.AsyncFunctionDef) else "def"
    own = [(name, text) for name, text in _parameters(method) if name not in keys]
    parameters = [text for _, text in own] + ["*"] * ("*" not in dict(own))
    parameters += [_parameter(name, hint) for name, (hint, _) in keys.items()]
    yield f"{indent}{kind} {method.name}("
    yield from _wrapped(parameters, indent + " " * 4)
    yield f"{indent}) -> {ast.unparse(method.returns or ast.Constant(None))}:{after}  # fmt: skip"


def _parameters(method: Function) -> Iterator[tuple[str, str]]:
    """The parameters of a signature, by name, as they are written; `*` is one of them."""
    taken = method.args
    defaults = [None] * (len(taken.args) - len(taken.defaults)) + taken.defaults
    yield from (_as_written(each, default) for each, default in zip(taken.args, defaults, strict=True))
    yield from [("*", "*")] if taken.kwonlyargs else []
    yield from (_as_written(*each) for each in zip(taken.kwonlyargs, taken.kw_defaults, strict=True))


def _as_written(parameter: ast.arg, default: ast.expr | None) -> tuple[str, str]:
    written = ast.unparse(parameter)
    return parameter.arg, written if default is None else f"{written} = {ast.unparse(default)}"


def _parameter(name: str, hint: str) -> str:
    """A key as a parameter; `...` stands for the default of one that cannot be None."""
    if hint.startswith("Required["):
        return f"{name}: {hint.removeprefix('Required[').removesuffix(']')}"
    return f"{name}: {hint} = {'None' if hint.endswith('| None') else '...'}"


def _wrapped(parameters: list[str], indent: str) -> Iterator[str]:
    line = indent.removesuffix(" ")
    for parameter in parameters:
        if len(f"{line} {parameter},") > WIDTH:
            yield line
            line = indent.removesuffix(" ")
        line += f" {parameter},"
    yield line


def _section(docstring: list[str]) -> tuple[int, int] | None:
    """Where the entries under `Args:` begin and end in the lines of a docstring."""
    stripped = [line.strip() for line in docstring]
    if "Args:" not in stripped:
        return None
    begin = stripped.index("Args:") + 1
    return begin, next(place for place in range(begin, len(stripped)) if stripped[place] in ("", '"""'))


def _kept(section: list[str], indent: str, explicit: set[str]) -> Iterator[str]:
    """The entries of the method's own parameters."""
    keeps = False
    for line in section:
        entry = re.match(rf"{indent}(\w+):", line)
        keeps = entry[1] in explicit if entry else keeps
        if keeps:
            yield line


def _entries(keys: Keys, indent: str) -> Iterator[str]:
    """An entry for each key."""
    for name, (_, text) in keys.items():
        entry = f"{name}: {_begun(' '.join(text.split()))}"
        yield from wrap(
            entry,
            WIDTH,
            initial_indent=indent,
            subsequent_indent=indent + " " * 4,
            break_long_words=False,
            break_on_hyphens=False,
        )


def _begun(text: str) -> str:
    """A text that begins with a small letter, unless its first word is one of capitals."""
    return text if text[1:2].isupper() else text[:1].lower() + text[1:]
