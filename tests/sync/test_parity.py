"""What the asynchronous package shows, the blocking one shows, and nothing else."""

from __future__ import annotations

import importlib
import inspect
import re
import subprocess
import sys
from typing import Any

import pytest

import payments_async
import payments_sync


def test_both_packages_show_the_same_names_but_for_the_client() -> None:
    asynchronous, blocking = set(payments_async.__all__), set(payments_sync.__all__)
    assert asynchronous - blocking == {"AsyncPayments"}
    assert blocking - asynchronous == {"Payments"}
    assert set(dir(payments_sync)) >= blocking


@pytest.mark.parametrize("name", sorted(set(payments_async.__all__) - {"AsyncPayments"}))
def test_a_shared_name_is_the_same_object(name: str) -> None:
    assert getattr(payments_sync, name) is getattr(payments_async, name)


def test_a_module_is_loaded_when_it_is_used_and_an_unknown_name_is_refused() -> None:
    assert payments_sync.__getattr__("errors") is importlib.import_module("payments_sync.errors")
    with pytest.raises(AttributeError, match="no attribute 'AsyncPayments'"):
        payments_sync.AsyncPayments  # noqa: B018 - the point
    assert payments_sync.__version__ == payments_async.__version__


def test_bulk_shows_the_same_names_of_which_only_the_batches_are_its_own() -> None:
    asynchronous = importlib.import_module("payments_async.bulk")
    blocking = importlib.import_module("payments_sync.bulk")
    assert sorted(asynchronous.__all__) == sorted(blocking.__all__)
    assert set(dir(blocking)) >= set(blocking.__all__)
    other = [name for name in blocking.__all__ if getattr(blocking, name) is not getattr(asynchronous, name)]
    assert sorted(other) == ["Outbox", "PayoutBatch"]
    assert blocking.PayoutBatch.__module__ == "payments_sync.bulk.batch"
    with pytest.raises(AttributeError, match="no attribute 'AsyncPayments'"):
        blocking.AsyncPayments  # noqa: B018 - the point


def test_an_import_loads_no_more_than_is_needed() -> None:
    lines = ["import sys"]
    for package, left_out in (  # each loads what the one before did, and more
        ("payments_sync", {"aiohttp", "anyio", "attrs", "payments_sync.bulk"}),
        ("payments_sync.client", {"payments_async.bulk"}),
        ("payments_sync.bulk, payments_sync.bulk.errors", {"aiosqlite", "sqlalchemy"}),
        ("payments_sync.bulk.sources, payments_sync.bulk.batch", {"aiosqlite"}),
    ):
        lines += [f"import {package}", f"print(set({sorted(left_out)}) & sys.modules.keys())"]
    shown = subprocess.check_output([sys.executable, "-c", "\n".join(lines)], text=True, timeout=300)
    assert shown == "set()\n" * 4


@pytest.mark.parametrize(("module", "name"), [("client", "AsyncPayments"), ("bulk.outbox", "Outbox")])
def test_a_class_has_the_same_methods_with_the_same_signatures_and_they_block(module: str, name: str) -> None:
    """The mirror's own tests see to the rest."""
    asynchronous = public(getattr(importlib.import_module(f"payments_async.{module}"), name))
    blocking = public(getattr(importlib.import_module(f"payments_sync.{module}"), name.removeprefix("Async")))
    assert {RENAMED.get(each, each) for each in asynchronous} == blocking.keys()
    for each, method in asynchronous.items():
        twin = blocking[RENAMED.get(each, each)]
        theirs = re.sub(
            r"\bAsync(Connection|Iterator|Payments|Session)\b", r"\1", str(inspect.signature(method))
        )
        assert str(inspect.signature(twin)) == theirs
        assert not inspect.iscoroutinefunction(twin)
        assert not inspect.isasyncgenfunction(twin)


RENAMED = {"aclose": "close", "__aenter__": "__enter__", "__aexit__": "__exit__"}


def public(cls: type[Any]) -> dict[str, Any]:
    """The public methods of a class."""
    special = {"__init__", "__repr__", *RENAMED, *RENAMED.values()}
    members = inspect.getmembers(cls, lambda value: inspect.isfunction(value) or inspect.ismethod(value))
    return {name: value for name, value in members if name in special or not name.startswith("_")}
