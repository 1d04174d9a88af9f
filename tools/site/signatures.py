"""An extension of griffe: methods that take `**arguments: Unpack[...]` are shown with each argument."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import griffe

PACKAGE = "payments_async"
"""Where the TypedDicts are, of both packages."""


class NamedArguments(griffe.Extension):  # type: ignore[misc] # griffe is there where the site is built
    """Puts the keys of TypedDicts into signatures, as `resources/_signatures.py` does for `help()`."""

    def on_object(self, *, obj: Any, **_: Any) -> None:
        """A docstring names the interface by its file: the site has a link to its page."""
        if obj.docstring is not None:
            obj.docstring.value = obj.docstring.value.replace(
                "`docs/interface.md`", "[the interface](../interface/)"
            )

    def on_package(self, *, pkg: Any, loader: Any, **_: Any) -> None:
        """Change the signatures of a package."""
        if not pkg.path.startswith("payments_"):
            return
        if PACKAGE not in loader.modules_collection.members:
            loader.load(PACKAGE)
        for function in functions(pkg):
            for parameter in list(function.parameters):
                if name_in(parameter.annotation, "Unpack"):
                    keys = loader.modules_collection[parameter.annotation.slice.canonical_path]
                    del function.parameters[parameter.name]
                    for each in sorted(parameters(keys), key=lambda each: each.default is not None):
                        function.parameters.add(each)


def functions(owner: Any) -> Iterator[Any]:
    """The functions of a module or class and of what is in it, overloads too."""
    for member in owner.members.values():
        if member.is_alias:
            continue
        if member.is_function:
            yield from (member, *(member.overloads or ()))
        elif member.is_class or member.is_module:
            yield from functions(member)


def parameters(keys: Any) -> Iterator[Any]:
    """The keys of a TypedDict as parameters; `...` stands for the default of one that cannot be None."""
    for base in keys.resolved_bases:
        yield from parameters(base)
    for name, member in keys.members.items():
        if not member.is_attribute:
            continue
        hint = member.annotation
        is_needed = name_in(hint, "Required")
        default = None if is_needed else "None" if str(hint).endswith("| None") else "..."
        kind = griffe.ParameterKind.keyword_only
        yield griffe.Parameter(name, annotation=hint.slice if is_needed else hint, kind=kind, default=default)


def name_in(annotation: Any, name: str) -> bool:
    """Return whether an annotation is `name[...]`."""
    return isinstance(annotation, griffe.ExprSubscript) and annotation.canonical_path == f"typing.{name}"
