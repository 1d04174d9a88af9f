"""The Args sections of methods that take `**arguments: Unpack[...]`, written from the TypedDicts."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from itertools import chain, pairwise
from textwrap import wrap

from .bodies import Function
from .words import Unmirrored

HOMES = ("arguments", "bulk/_options", "bulk/workers/_settings")
"""The modules with TypedDicts."""
WIDTH = 110
Keys = Mapping[str, str]
"""The keys of a TypedDict, with their texts."""


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


def _own(path: str, node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    """The fields that a class itself defines, with the text under each."""
    for field, below in pairwise([*node.body, None]):
        if isinstance(field, ast.AnnAssign):
            name = ast.unparse(field.target)
            if not isinstance(below, ast.Expr):
                raise Unmirrored(f"{path}: {node.name}.{name} has no docstring")
            yield name, ast.literal_eval(below.value)


def with_arguments(path: str, text: str, known: Mapping[str, Keys]) -> str:
    """A module's text, in which each Args section names the keys of its method's TypedDict."""
    lines = text.splitlines()
    methods = [node for node in ast.walk(ast.parse(text)) if isinstance(node, Function)]
    for method in sorted(methods, key=lambda node: -node.lineno):
        hint = method.args.kwarg and ast.unparse(method.args.kwarg.annotation or ast.Pass())
        found = re.fullmatch(r"Unpack\[(?:\w+\.)*(\w+)\]", hint or "")
        if found and ast.get_docstring(method) is not None:
            first, last = method.body[0].lineno - 1, method.body[0].end_lineno or 0
            section = _section(lines[first:last])
            if section is None:
                raise Unmirrored(f"{path}: {method.name} has no Args section")
            begin, end = (first + place for place in section)
            explicit = {argument.arg for argument in [*method.args.args, *method.args.kwonlyargs]}
            indent = " " * (method.col_offset + 8)
            kept = _kept(lines[begin:end], indent, explicit)
            lines[begin:end] = [*kept, *_written(known[found[1]], indent)]
    return "\n".join([*lines, ""])


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


def _written(keys: Keys, indent: str) -> Iterator[str]:
    """An entry for each key."""
    for name, text in keys.items():
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
