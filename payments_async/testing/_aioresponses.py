"""Lets aioresponses answer on the newest aiohttp.

aiohttp 3.14 makes a response with an argument that aioresponses 0.7 does not give (`stream_writer`). Where
aioresponses gives it, as the fork aioresponses-ng does, nothing is changed. It imports neither by itself.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType, SimpleNamespace
from typing import Any, Final

_CORE: Final = "aioresponses.core"
_WRITTEN: Final = SimpleNamespace(output_size=0)
"""Stands for the writer of a request that was written; aiohttp reads its size alone."""


def adapt_aioresponses() -> None:
    """Let the installed aioresponses answer on the newest aiohttp.

    For tests without pytest: the plugin does it by itself. Does nothing where aioresponses can answer.

    Raises:
        ImportError: aioresponses is not installed.
    """
    _adapt(import_module(_CORE))


def _adapt(core: Any) -> None:
    """Adapt the module that makes the responses, unless it can make one."""
    try:
        core.RequestMatch("http://stub.test/")._build_response(core.URL("http://stub.test/"))
    except TypeError:
        core.ClientResponse = partial(core.ClientResponse, stream_writer=_WRITTEN)
    except AttributeError:  # another release, whose inner parts have other names: its own matter
        return


class AdaptingFinder(MetaPathFinder):
    """An import hook that adapts aioresponses when it is imported."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find the module that makes the responses, and no other."""
        spec = PathFinder.find_spec(fullname, path) if fullname == _CORE else None
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module
            spec.loader.exec_module = partial(_execute, execute)  # type: ignore[method-assign] # of this loader
        return spec


def _execute(execute: Callable[[ModuleType], None], module: ModuleType) -> None:
    execute(module)
    _adapt(module)


def adapt_when_imported() -> Callable[[], None]:
    """Adapt aioresponses now if it is imported, else when it is. Returns a function that ends this."""
    if _CORE in sys.modules:
        adapt_aioresponses()
    finder = AdaptingFinder()
    sys.meta_path.insert(0, finder)
    return partial(sys.meta_path.remove, finder)
