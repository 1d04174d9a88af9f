"""What `inspect.signature`, `help()`, IPython and mocks see of the public classes.

They see every argument by name where a method takes `**arguments: Unpack[...]`, and the methods of a resource
on the client's class. Type checkers and their editors read the TypedDict itself; `tools/mirror` writes the
Args sections of the docstrings from it.
"""

from __future__ import annotations

from functools import cache, reduce
from inspect import Parameter, isfunction, signature, unwrap
from typing import Any, TypeVar

T = TypeVar("T")


def on_class(cls: type[T]) -> T:
    """A class in the place of an attribute that objects set: for `help(AsyncPayments.payouts.create)`."""
    return cls  # type: ignore[return-value] # so that checkers see what objects have


def named_arguments(target: T) -> T:
    """Give a function, or each method of a class, its signature with the keys of its TypedDict."""
    for function in vars(target).values() if isinstance(target, type) else (target,):
        if isfunction(function) and any("Unpack[" in hint for hint in function.__annotations__.values()):
            _name_arguments(function)
    return target


def _name_arguments(function: Any) -> None:
    taken = signature(function)
    *own, rest = taken.parameters.values()
    first, *below = rest.annotation.removeprefix("Unpack[").removesuffix("]").split(".")
    keys: Any = reduce(getattr, below, unwrap(function).__globals__[first])
    function.__signature__ = taken.replace(parameters=[*own, *_parameters(keys)])


@cache
def _parameters(keys: Any) -> list[Parameter]:
    """The keys of a TypedDict as parameters; `...` stands for the default of one that cannot be None."""
    hints = {name: hint.__forward_arg__ for name, hint in keys.__annotations__.items()}
    return [_parameter(name, hint) for name, hint in hints.items()]


def _parameter(name: str, hint: str) -> Parameter:
    needed = hint.removeprefix("Required[")
    if needed != hint:
        return Parameter(name, Parameter.KEYWORD_ONLY, annotation=needed.removesuffix("]"))
    default = None if hint.endswith("| None") else ...
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=hint)
