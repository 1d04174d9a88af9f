"""The shop's orders, in a SQLite file that its processes share. It stands for your database."""

from __future__ import annotations

import os
import secrets
import sqlite3
from contextlib import closing
from typing import Any

PRICE, CURRENCY = "25.50", "GHS"
_TABLE = (
    "CREATE TABLE IF NOT EXISTS orders (number TEXT PRIMARY KEY, paid INTEGER NOT NULL DEFAULT 0, url TEXT)"
)


def _first(statement: str, *values: str) -> Any:
    """A statement's first value. Its connection is its own: none is carried into a fork or another thread."""
    file = os.environ.get("SHOP_DATABASE", "shop.db")
    with closing(sqlite3.connect(file, isolation_level=None)) as database:
        database.execute(_TABLE)
        row = database.execute(statement, values).fetchone()
    return row[0] if row else None


def add() -> str:
    """Take an order, before anything is sent: a payment always has its order. Returns its number."""
    number = secrets.token_urlsafe(12)
    _first("INSERT INTO orders (number) VALUES (?)", number)
    return number


def with_url(number: str, url: str) -> str | None:
    """Store an order's webhook URL. Returns the one that was stored first; None for an unknown order."""
    _first("UPDATE orders SET url = ? WHERE number = ? AND url IS NULL", url, number)
    found: str | None = _first("SELECT url FROM orders WHERE number = ?", number)
    return found


def set_paid(number: str) -> None:
    """The service says that it is paid. May be said twice."""
    _first("UPDATE orders SET paid = 1 WHERE number = ?", number)


def is_paid(number: str) -> bool:
    """Whether the service has said so."""
    return bool(_first("SELECT paid FROM orders WHERE number = ?", number))
