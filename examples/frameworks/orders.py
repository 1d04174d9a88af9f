"""The shop's orders, in a SQLite file that its processes share. It stands for your database."""

from __future__ import annotations

import os
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

PRICE, CURRENCY = "25.50", "GHS"
_TABLE = (
    "CREATE TABLE IF NOT EXISTS orders (number TEXT PRIMARY KEY, paid INTEGER NOT NULL DEFAULT 0, url TEXT)"
)


@contextmanager
def _database() -> Iterator[sqlite3.Connection]:
    """A connection for one statement: none is carried into a forked worker or another thread."""
    database = sqlite3.connect(os.environ.get("SHOP_DATABASE", "shop.db"), isolation_level=None)
    try:
        database.execute(_TABLE)
        yield database
    finally:
        database.close()


def add() -> str:
    """Take an order, before anything is sent: a payment always has its order. Returns its number."""
    number = secrets.token_urlsafe(12)
    with _database() as database:
        database.execute("INSERT INTO orders (number) VALUES (?)", [number])
    return number


def with_url(number: str, url: str) -> str | None:
    """Store an order's webhook URL. Returns the one that was stored first; None for an unknown order."""
    with _database() as database:
        database.execute("UPDATE orders SET url = ? WHERE number = ? AND url IS NULL", [url, number])
        found = database.execute("SELECT url FROM orders WHERE number = ?", [number]).fetchone()
    return str(found[0]) if found else None


def set_paid(number: str) -> None:
    """The service says that it is paid. May be said twice."""
    with _database() as database:
        database.execute("UPDATE orders SET paid = 1 WHERE number = ?", [number])


def is_paid(number: str) -> bool:
    """Whether the service has said so."""
    with _database() as database:
        found = database.execute("SELECT paid FROM orders WHERE number = ?", [number]).fetchone()
    return bool(found and found[0])
