"""What the asynchronous package shows, the blocking one shows, and nothing else."""

from __future__ import annotations

import importlib
import subprocess
import sys

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
