"""The statements that hand a call to the asynchronous twin."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from textwrap import fill

Function = ast.FunctionDef | ast.AsyncFunctionDef
_GLUE = "\0"
"""For a space inside an argument, which is no place to break a line."""


def is_entered(owner: ast.ClassDef) -> bool:
    """Return whether a class, or its base, is open only between `__aenter__` and `__aexit__`."""
    names = [getattr(node, "name", None) for node in owner.body]
    return "aclose" not in names and ("__aenter__" in names or "open" in names)


def made_with_twin(owner: ast.ClassDef) -> Iterator[str]:
    """The `__init__` of a class whose objects get their twin and its bridge."""
    entered = is_entered(owner)
    types = (f"Async{owner.name}", "BatchBridge") if entered else (owner.name, "Bridge")
    yield f"    def __init__(self, twin: {types[0]}, bridge: {types[1]}) -> None:"
    yield from ['        """Use `open`."""'] if entered else []
    yield "        self._async, self._bridge = twin, bridge"


def forwarding(owner: ast.ClassDef, method: Function) -> Iterator[str]:
    """The statements that hand a call to the twin."""
    ours = _working if is_entered(owner) else _assembled
    twin, given = f"self._async.{method.name}", list(_given(method.args))
    if "json" in [each.arg for each in method.args.kwonlyargs]:
        yield "json = hidden_pairs(json)"
    yield from list(ours(owner, method, twin, given)) or _plainly(owner, method, twin, given)


def way(owner: ast.ClassDef, method: Function) -> str | None:
    """How a written signature of a resource hands over its call; None where it needs a body of its own."""
    if "Resource" not in map(ast.unparse, owner.bases):
        return None
    if "AsyncIterator" in ast.unparse(method.returns or ast.Pass()):
        return "Bridge.iterate"
    return "Bridge.call" if isinstance(method, ast.AsyncFunctionDef) else "Bridge.call_plainly"


def _plainly(owner: ast.ClassDef, method: Function, twin: str, given: list[str]) -> Iterator[str]:
    if "property" in map(ast.unparse, method.decorator_list):
        yield f"return {twin}"
    elif isinstance(method, ast.FunctionDef):
        yield _call(f"return {twin}", given)
    elif [getattr(node, "name", None) for node in owner.body].count(method.name) > 1:
        yield "# a ParamSpec does not hold overloads"
        yield _call("return self._bridge.call", [f"lambda: {_call(twin, given)}"])
    else:
        yield _call("return self._bridge.call", [twin, *given])


def _assembled(owner: ast.ClassDef, method: Function, twin: str, given: list[str]) -> Iterator[str]:
    """The methods of a client alone: how it is made, closed, and made again with other options."""
    if method.name == "__init__":
        yield "api_key, base_url, proxy = hidden(api_key), hidden(base_url), hidden(proxy)"
        yield "limit_store = hidden(limit_store)"
        yield _call(f"twin = {owner.name}", given)
        yield "self._assemble(twin, Bridge(twin.aclose))"
    elif method.name == "aclose":
        yield "self._bridge.close()"
    elif isinstance(method, ast.FunctionDef) and method.returns and ast.unparse(method.returns) == "Self":
        yield "api_key = hidden(api_key)"
        yield _call(f"twin = {twin}", given)
        yield "bridge = self._bridge if api_key is SAME_KEY else Bridge(twin.aclose, self._bridge)"
        yield "sibling = object.__new__(type(self))"
        yield "sibling._assemble(twin, bridge)"
        yield "return sibling"


def _working(owner: ast.ClassDef, method: Function, twin: str, given: list[str]) -> Iterator[str]:
    """The methods of a class that uses a client, and is open for a while.

    An input is read in the caller's thread. A long run, or a method with `drain`, is stopped in order when it
    is interrupted. A plain method that returns None runs on the loop.
    """
    arguments = [*method.args.args, *method.args.kwonlyargs][1:]
    if method.name == "open":
        twins = ["None if client is None else client._async" if name == "client" else name for name in given]
        yield _call(f"twin = Async{owner.name}.open", twins)
        yield "return cls(twin, BatchBridge(twin, None if client is None else client._bridge))"
    elif method.name == "__aenter__":
        yield "self._bridge.open()"
        yield "return self"
    elif method.name == "__aexit__":
        yield "self._bridge.close()"
    elif isinstance(method, ast.FunctionDef):
        if method.returns and ast.unparse(method.returns) == "None":
            yield _call("self._bridge.call_soon", [twin, *given])
    elif "drain" in [each.arg for each in arguments]:
        yield _call("return self._bridge.call_and_drain", ["drain", twin, *given])
    elif arguments and ast.unparse(arguments[0].annotation or arguments[0]) == "Input":
        yield _call("return self._bridge.call_with_rows", [twin, *given])


def _call(function: str, arguments: Sequence[str]) -> str:
    """A call, on one line, or with as many arguments as fit on each."""
    line = f"{function}({', '.join(arguments)})"
    if len(line) <= 100 or len(arguments) == 1:
        return line if len(line) <= 100 else f"{function}(\n    {arguments[0]},\n)"
    words = [f"{argument.replace(' ', _GLUE)}," for argument in arguments]
    filled = fill(" ".join(words), 98, initial_indent="    ", subsequent_indent="    ")
    return f"{function}(\n{filled.replace(_GLUE, ' ')}\n)  # fmt: skip"


def _given(arguments: ast.arguments) -> Iterator[str]:
    """The arguments of a method, as they are passed on."""
    yield from (argument.arg for argument in [*arguments.posonlyargs, *arguments.args][1:])
    yield from (f"{argument.arg}={argument.arg}" for argument in arguments.kwonlyargs)
    if arguments.kwarg:
        yield f"**{arguments.kwarg.arg}"


def assembly(twin: str, method: Function) -> Iterator[str]:
    """The client's resources: each assignment of an `Async` class."""
    yield f"    def _assemble(self, twin: {twin}, bridge: Bridge) -> None:"
    yield "        self._async, self._bridge = twin, bridge"
    for node in method.body:
        if found := re.fullmatch(r"self\.(\w+) = Async(\w+)\(\w+\)", ast.unparse(node)):
            yield f"        self.{found[1]} = {found[2]}(twin.{found[1]}, bridge)"
