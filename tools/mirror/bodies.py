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


def uses_client(owner: ast.ClassDef) -> bool:
    """Return whether a class is made with a client."""
    methods = [node for node in owner.body if isinstance(node, Function) and node.name == "__init__"]
    return any(_clients(method) for method in methods)


def made_with_twin(owner: ast.ClassDef) -> Iterator[str]:
    """The `__init__` of a class whose objects get their twin and its bridge."""
    entered = is_entered(owner)
    types = (f"Async{owner.name}", "BatchBridge") if entered else (owner.name, "Bridge")
    yield f"    def __init__(self, twin: {types[0]}, bridge: {types[1]}) -> None:"
    yield from ['        """Use `open`."""'] if entered else []
    yield "        self._async, self._bridge = twin, bridge"


def _clients(method: Function) -> list[ast.arg]:
    """The arguments that are clients."""
    arguments = [*method.args.args, *method.args.kwonlyargs]
    return [each for each in arguments if "AsyncPayments" in ast.unparse(each.annotation or each)]


def forwarding(owner: ast.ClassDef, method: Function) -> Iterator[str]:
    """The statements that hand a call to the twin."""
    ours = _working if is_entered(owner) or uses_client(owner) else _assembled
    twin, given = f"self._async.{method.name}", list(_given(method.args))
    own = list(ours(owner, method, twin, given))
    return _without_accounts(method, own or list(_plainly(owner, method, twin, given)))


def way(owner: ast.ClassDef, method: Function) -> str | None:
    """How a written signature of a resource hands over its call; None where it needs a body of its own."""
    if "Resource" not in map(ast.unparse, owner.bases):
        return None
    if "AsyncIterator" in ast.unparse(method.returns or ast.Pass()):
        return "Bridge.iterate"
    return "Bridge.call" if isinstance(method, ast.AsyncFunctionDef) else "Bridge.call_plainly"


def _without_accounts(method: Function, statements: list[str]) -> Iterator[str]:
    """The statements, with arguments deleted, so that tracebacks that print locals show no account data."""
    if "json" in [each.arg for each in method.args.kwonlyargs]:
        yield "json = hidden_pairs(json)"
    kept = method.args.kwarg and ast.unparse(method.args.kwarg.annotation or ast.Pass())
    if not kept or not re.search(r"(Arguments|Preparation)\]$", kept):
        yield from statements
        return
    yield from ("try:", *(f"    {line}" for statement in statements for line in statement.splitlines()))
    yield from ("finally:", "    del arguments  # tracebacks print locals")


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
        yield "bridge = self._bridge if api_key is SAME_KEY else Bridge(twin.aclose)"
        yield "sibling = object.__new__(type(self))"
        yield "sibling._assemble(twin, bridge)"
        yield "return sibling"


def _working(owner: ast.ClassDef, method: Function, twin: str, given: list[str]) -> Iterator[str]:
    """The methods of a class that uses a client, and is open for a while or has one long run.

    An input is read in the caller's thread. A long run, or a method with `drain`, is stopped in order when it
    is interrupted. A plain method that returns None runs on the loop.
    """
    arguments = [*method.args.args, *method.args.kwonlyargs][1:]
    if method.name == "__init__":
        yield _call(f"twin = Async{owner.name}", _passed(method, given))
        bridges = [_twin_of(each, "_bridge") for each in _clients(method)]
        yield _call("self._async, self._bridge = twin, BatchBridge", ["twin", *bridges])
    elif method.name == "open":
        yield _call(f"twin = Async{owner.name}.open", _passed(method, given))
        bridges = [_twin_of(each, "_bridge") for each in _clients(method)]
        yield f"return cls(twin, {_call('BatchBridge', ['twin', *bridges])})"
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


def function_body(function: ast.AsyncFunctionDef, twin: str, source: str) -> str:
    """The statement of a function that uses a client: one that runs a twin's method as it is, else a call."""
    if len(function.body) == 2:
        return source
    (client,) = _clients(function)
    given = _passed(function, list(_given(function.args, bound=False)))
    return _call(f"return {client.arg}._bridge.call", [twin, *given])


def _passed(method: Function, given: list[str]) -> list[str]:
    """Arguments, with the twins of clients."""
    twins = {each.arg: _twin_of(each, "_async") for each in _clients(method)}
    return [twins.get(name, name) for name in given]


def _twin_of(client: ast.arg, what: str) -> str:
    name = client.arg
    may_be_none = "None" in ast.unparse(client.annotation or client)
    return f"None if {name} is None else {name}.{what}" if may_be_none else f"{name}.{what}"


def _call(function: str, arguments: Sequence[str]) -> str:
    """A call, on one line, or with as many arguments as fit on each."""
    line = f"{function}({', '.join(arguments)})"
    if len(line) <= 100 or len(arguments) == 1:
        return line if len(line) <= 100 else f"{function}(\n    {arguments[0]},\n)"
    words = [f"{argument.replace(' ', _GLUE)}," for argument in arguments]
    filled = fill(" ".join(words), 98, initial_indent="    ", subsequent_indent="    ")
    return f"{function}(\n{filled.replace(_GLUE, ' ')}\n)  # fmt: skip"


def _given(arguments: ast.arguments, *, bound: bool = True) -> Iterator[str]:
    """The arguments of a signature, as they are passed on. `bound`: the first is `self`."""
    yield from (argument.arg for argument in [*arguments.posonlyargs, *arguments.args][bound:])
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
