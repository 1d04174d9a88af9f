"""What each commit of a ledger said, and whether it was true at that moment.

A book follows one ledger file: the rows as its last commit has them are the model's `Entry`, so that the
model's promises and its judge read real ledgers as well.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any

import attrs

from payments_async.bulk._protocol.attempts import AttemptReply
from payments_async.bulk._protocol.row_state import RowKnowledge, RowState

from ..ledger import Breach, Disk, Entry
from ..promises import Promises
from ..service import Request
from . import wire

_ROWS = (
    "SELECT s.state, s.generation, s.revision, s.epoch, s.intents, s.cleared, s.payout_id, "
    "r.body, r.reference, coalesce(s.idempotency_key, r.idempotency_key) "
    "FROM row_states s JOIN rows r ON r.number = s.number AND r.version = s.version ORDER BY s.number"
)


@attrs.frozen
class Held:
    """A row's names as the ledger has them."""

    reference: str
    key: str


class Book(Disk):
    """One ledger file as of its last commit."""

    def __init__(self, name: str, path: str) -> None:
        super().__init__(name, {})
        self.path = path
        self.held: dict[str, Held] = {}
        self.heard: dict[str, str] = {}
        """{reference: the payout that an answer to this process has shown as made}."""

    def copy_to(self, name: str, path: str) -> Book:
        """The same content in another file."""
        book = Book(name, path)
        book.rows, book.held = dict(self.rows), dict(self.held)
        return book


def read_rows(raw: sqlite3.Connection) -> dict[str, tuple[RowKnowledge, wire.Asked, Held]]:
    """All rows of a ledger, by name."""
    found: dict[str, tuple[RowKnowledge, wire.Asked, Held]] = {}
    for state, generation, revision, epoch, intents, cleared, payout, body, reference, key in _select(raw):
        known = RowKnowledge(RowState(state), generation, revision, epoch, intents, cleared, payout)
        asked = wire.asked(body)
        found[asked.row] = (known, asked, Held(reference, key))
    return found


def _select(raw: sqlite3.Connection) -> list[Any]:
    try:
        return raw.execute(_ROWS).fetchall()
    except sqlite3.OperationalError:  # its tables are still to be made
        return []


def _count(known: RowKnowledge) -> tuple[int, int]:
    return known.generation, known.intents


@attrs.frozen(eq=False)
class Watched:
    """Whom a line tells what goes over it."""

    note: Callable[[str], None]
    sending: Callable[[Request], None]
    """Before a creation leaves."""
    heard: Callable[[Request, AttemptReply], None]
    ended: Callable[[Request], None]


class Books:
    """All ledgers of a world, and the requests that are under way for them."""

    def __init__(self, promises: Promises, now: Callable[[], float], note: Callable[[str], None]) -> None:
        self._promises, self._now, self._note = promises, now, note
        self._by_path: dict[str, Book] = {}
        self._under_way: dict[tuple[str, str], int] = {}
        self.breach: Breach | None = None
        """The first promise that was broken. It is not raised where it is seen: there it would be caught."""

    def add(self, book: Book) -> Book:
        """Follow it."""
        self._by_path[book.path] = book
        return book

    def committed(self, path: str, raw: sqlite3.Connection) -> None:
        """A commit is on the disk."""
        book = self._by_path[path]
        for row, (known, asked, held) in read_rows(raw).items():
            before = book.rows.get(row)
            if before is not None and (before.known, before.body) == (known, asked):
                continue
            if before is not None:
                self._watch(self._check_move, book, row, before, known, held)
            at = (
                self._now() if before is None or _count(known) != _count(before.known) else before.intended_at
            )
            book.rows[row], book.held[row] = Entry(asked, known, intended_at=at), held

    def _check_move(self, book: Book, row: str, before: Entry, known: RowKnowledge, held: Held) -> None:
        self._note(f"{before.known.state} to {known.state}")
        if known.epoch > before.known.epoch:
            self._note("next epoch")
        self._promises.claiming(book.name, before, known, held.reference)

    def sending(self, book: Book, request: Request) -> None:
        """A request is about to leave."""
        place = (book.name, request.reference)
        under_way = self._under_way.get(place, 0)
        self._under_way[place] = under_way + 1
        self._watch(self._check_sending, book, request, under_way)

    def _check_sending(self, book: Book, request: Request, under_way: int) -> None:
        row = request.body.row
        entry, held = book.rows.get(row), book.held.get(row)
        if entry is None or entry.known.state is not RowState.IN_FLIGHT:
            raise Breach(f"sent, and the ledger has {row} {entry and entry.known.state}")
        if held != Held(request.reference, request.key) or entry.body != request.body:
            raise Breach(f"sent something else than the ledger has of {row}")
        self._promises.sending(request, book, entry, under_way, self._now())

    def heard(self, book: Book, request: Request, reply: AttemptReply) -> None:
        """An answer came to it."""
        entry = book.rows.get(request.body.row)
        if reply.record == "matching":
            book.heard[request.reference] = reply.payout_id
        if entry is not None:
            self._promises.heard(book, request.key, entry, reply)

    def ended(self, book: Book, request: Request) -> None:
        """Nobody waits for it any more."""
        place = (book.name, request.reference)
        if place in self._under_way:  # else its process is dead, and this is its burial
            self._under_way[place] -= 1

    def check_settled(self, path: str) -> None:
        """A run that ended by itself has recorded all it was told, and left nothing open but doubt.

        Raises Breach.
        """
        book = self._by_path[path]
        for row, entry in book.rows.items():
            told = book.heard.get(book.held[row].reference)
            if entry.known.state in (RowState.NEW, RowState.IN_FLIGHT):
                raise Breach(f"the run is over, and {row} is {entry.known.state}")
            if told is not None and entry.known.payout_id != told:
                raise Breach(f"a payout of {row} was shown, and the ledger does not have it")

    def forget(self, path: str) -> None:
        """No process waits for a request of this ledger any more."""
        book = self._by_path[path]
        book.heard.clear()
        for place in [place for place in self._under_way if place[0] == book.name]:
            del self._under_way[place]

    def _watch(self, check: Callable[..., None], *args: Any) -> None:
        try:
            check(*args)
        except Breach as found:
            self.breach = self.breach or found
