"""Lets aioresponses answer on the newest aiohttp.

aiohttp 3.14 makes a response with an argument that aioresponses 0.7 does not give (`stream_writer`). Where
aioresponses gives it, as the fork aioresponses-ng does, nothing is changed.
"""

from __future__ import annotations

from functools import partial
from importlib import import_module
from types import SimpleNamespace
from typing import Any, Final

_WRITTEN: Final = SimpleNamespace(output_size=0)
"""Stands for the writer of a request that was written; aiohttp reads its size alone."""


def adapt_aioresponses() -> None:
    """Let the installed aioresponses answer on the newest aiohttp.

    The plugin does it for tests that import aioresponses. Does nothing where aioresponses can answer.

    Raises:
        ImportError: aioresponses is not installed.
    """
    _adapt(import_module("aioresponses.core"))


def _adapt(core: Any) -> None:
    """Adapt the module that makes the responses, unless it can make one."""
    try:
        core.RequestMatch("http://stub.test/")._build_response(core.URL("http://stub.test/"))
    except TypeError:
        core.ClientResponse = partial(core.ClientResponse, stream_writer=_WRITTEN)
    except AttributeError:  # another release, whose inner parts have other names: its own matter
        return
