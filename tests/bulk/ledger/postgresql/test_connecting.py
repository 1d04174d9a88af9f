"""Connecting: addresses without secrets, what a server must be, poolers, clocks, and arrays as parameters."""

from __future__ import annotations

import asyncio
import contextlib
import struct
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from payments_async import ConfigurationError
from payments_async._postgresql import Address
from payments_async._rate_limit.store import LimitRow
from payments_async._rate_limit.store_postgresql import PostgresLimitStore
from payments_async._runtime import SYSTEM, SystemRuntime
from payments_async.bulk._ledger.postgresql import database as driver
from payments_async.bulk._ledger.postgresql.database import Database
from payments_async.bulk._ledger.postgresql.session import (
    DatabaseClock,
    DatabaseServer,
    FailureKind,
    diagnosed,
    refusal,
)
from payments_async.bulk._protocol.machines import ServerIdentity
from payments_async.bulk.errors import BulkError
from payments_async.bulk.ledger_errors import DatabaseUnfit, LedgerError, LedgerUnavailable
from tests.support.databases import connected, run
from tests.support.servers import PASSWORD, PostgresServer


@pytest.mark.parametrize(
    ("url", "label"),
    [
        ("postgresql://u:p@db.test:5433/june", "postgresql://db.test:5433/june"),
        ("postgresql:///june?host=/run/postgresql", "postgresql:///run/postgresql:5432/june"),
        ("postgresql://a.test,b.test/june", "postgresql://a.test,b.test:5432/june"),
        ("postgresql://u@/june", "postgresql://localhost:5432/june"),
        ("postgresql://u:pass%40word@db%20test/a%40b", "postgresql://***:5432/***"),
    ],
)
def test_a_label_shows_where_a_database_is_and_no_secret(url: str, label: str) -> None:
    address = Address.of(url, BulkError)
    assert address.label == label
    assert "pass" not in repr(address)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:s3cret@db.test:port/x",
        "postgresql://u:s3cret@[::1/x",
        "postgresql://u:p@s3cret@db.test/june",
        "postgresql://u:p@s3cret/x@db.test/june",
        "postgresql://u:s3cret@db..internal/x",
        f"postgresql://u:s3cret@localhost,{'a' * 64}.test/x",
    ],
)
def test_an_address_that_cannot_be_read_is_not_shown(url: str) -> None:
    with pytest.raises(BulkError, match="percent-encoded") as caught:
        Address.of(url, BulkError)
    assert "s3cret" not in f"{caught.value!r} {caught.value.__context__!r} {caught.value.__cause__!r}"


@pytest.mark.parametrize(("variable", "value"), [("PGHOST", "db..internal"), ("PGPORT", "54 32")])
def test_a_fault_of_the_environment_is_not_blamed_on_the_address(
    variable: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(
        BulkError, match=r"^PGHOST, PGPORT or the service file, which complete the database's address, cannot"
    ):
        Address.of("postgresql:///june", BulkError)
    with pytest.raises(BulkError, match=r"^the database's address cannot be read: write"):
        Address.of("postgresql://db..test:x/june", BulkError)
    monkeypatch.delenv("PGPORT", raising=False)
    assert Address.of("postgresql://db.test/june", BulkError).label == "postgresql://db.test:5432/june"


@pytest.mark.parametrize(
    ("url", "is_private"),
    [
        ("postgresql://127.0.0.1/x", True),
        ("postgresql://localhost,[::1]/x", True),
        ("postgresql:///x?host=/run/postgresql", True),
        ("postgresql://db.test/x?sslmode=verify-full", True),
        ("postgresql://db.test/x", False),
        ("postgresql://db.test/x?sslmode=require", False),
        ("postgresql://localhost,db.test/x", False),
        ("postgresql://localhost/x?hostaddr=192.0.2.1", False),
    ],
)
def test_another_host_needs_a_checked_certificate(url: str, is_private: bool) -> None:
    assert (Address.of(url, BulkError).exposure is None) == is_private


async def test_a_database_on_another_host_is_refused_before_it_is_connected_to() -> None:
    with pytest.raises(DatabaseUnfit, match="sslmode=verify-full is not set"):
        await Database.open("postgresql://192.0.2.1/x", SYSTEM)


def test_what_an_address_leaves_open_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGHOST", "db.test")
    monkeypatch.setenv("PGSSLMODE", "verify-full")
    address = Address.of("postgresql:///june", BulkError)
    assert address.label == "postgresql://db.test:5432/june"
    assert address.exposure is None
    several = Address.of("postgresql:///june?host=a,b", BulkError)
    assert several.parameters["target_session_attrs"] == "read-write"


@pytest.mark.parametrize("url", ["postgresql://?service=ledger", "postgresql:///june"])
@pytest.mark.parametrize(
    ("settings", "is_private"),
    [
        ("host=db.test", False),
        ("host=db.test\nsslmode=require", False),
        ("host=localhost\nhostaddr=192.0.2.1", False),
        ("host=db.test\nsslmode=verify-full", True),
        ("host=127.0.0.1", True),
        ("dbname=june", True),
    ],
)
def test_a_service_file_is_read_before_anything_is_connected_to(
    url: str, settings: str, is_private: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "services").write_text(f"[ledger]\n{settings}\n")
    monkeypatch.setenv("PGSERVICEFILE", str(tmp_path / "services"))
    monkeypatch.setenv("PGSERVICE", "ledger")
    assert (Address.of(url, BulkError).exposure is None) == is_private


@pytest.mark.parametrize(
    ("url", "keeps"),
    [
        ("postgresql://127.0.0.1/x", True),
        ("postgresql://db.test/x?sslmode=require", True),
        ("postgresql:///x", False),
        ("postgresql:///x?host=/run/postgresql", False),
        ("postgresql://db.test/x?sslmode=verify-full", False),
        ("postgresql://127.0.0.1/x?require_auth=md5", False),
    ],
)
def test_no_password_is_given_away_where_an_impostor_could_answer(url: str, keeps: bool) -> None:
    given = Address.of(url, BulkError).parameters.get("require_auth")
    assert (given == "!password,!md5") == keeps


def test_a_libpq_that_knows_no_such_rule_is_not_told_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("payments_async._postgresql._KNOWS_AUTH", False)
    assert "require_auth" not in Address.of("postgresql://127.0.0.1/x", BulkError).parameters


@pytest.mark.parametrize(
    "asked", [struct.pack("!cII", b"R", 8, 3), struct.pack("!cII4s", b"R", 12, 5, b"salt")]
)
async def test_an_impostor_gets_no_password(asked: bytes) -> None:
    heard: list[bytes] = []
    answering: set[asyncio.Task[None]] = set()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(1000):
                heard.append(data)
                is_hello = struct.unpack_from("!I", data, 4)[0] == 3 << 16
                writer.write(asked if is_hello else b"N")  # no TLS
        with contextlib.suppress(OSError):
            writer.close()
            await writer.wait_closed()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answering.add(asyncio.ensure_future(answer(reader, writer)))

    async with await asyncio.start_server(accept, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        url = f"postgresql://pay:{PASSWORD}@127.0.0.1:{port}/june"
        with pytest.raises(DatabaseUnfit, match="in a form that an impostor could use") as caught:
            await Database.open(url, SYSTEM)
        store = PostgresLimitStore(url)
        with pytest.raises(ConfigurationError, match="in a form that an impostor could use"):
            await store.end_probe(LimitRow("https://api.example/v1", "3f9a", "write"), 0.0, answered=True)
        await asyncio.wait(answering)
    assert heard
    assert not any(data.startswith(b"p") for data in heard)
    assert PASSWORD not in str(caught.value)


async def test_a_connection_that_came_out_elsewhere_is_refused(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "exposure", lambda parameters: "it is on another host")
    with pytest.raises(DatabaseUnfit, match="it is on another host"):
        await Database.open(database, SYSTEM)
    async with connected(database, insecure_database=True) as allowed:
        assert await allowed.read(("SELECT 1", ())) == [[(1,)]]


async def test_a_host_from_a_service_file_is_looked_at_too(
    database: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = database.rpartition("/")[2]
    port = database.rpartition(":")[2].partition("/")[0]
    file = tmp_path / "services"
    file.write_text(
        f"[ledger]\nhost=somewhere.test\nhostaddr=127.0.0.1\nport={port}\ndbname={name}\nuser=postgres\n"
    )
    monkeypatch.setenv("PGSERVICEFILE", str(file))
    async with connected("postgresql://?service=ledger") as opened:
        assert await opened.read(("SELECT 1", ())) == [[(1,)]]


async def test_a_server_that_cannot_be_reached_or_refuses_is_said_without_its_words(
    postgres: PostgresServer,
) -> None:
    addresses: dict[str, tuple[type[LedgerError], str]] = {
        postgres.url("nothing"): (DatabaseUnfit, "it refused the user, the password or the database's name"),
        postgres.url(user="nobody"): (DatabaseUnfit, "it refused the user, the password or the database's"),
        "postgresql://x:y@127.0.0.1:9/z": (LedgerUnavailable, "cannot be reached"),
        "postgresql://x:y@localhost.invalid/z?sslmode=verify-full": (LedgerUnavailable, "cannot be reached"),
    }
    for url, (kind, said) in addresses.items():
        with pytest.raises(kind) as caught:
            await Database.open(url, SYSTEM)
        assert said in str(caught.value)
        assert PASSWORD not in str(caught.value)
        assert caught.value.__context__ is None


async def test_a_database_that_lets_nobody_in_any_more_may_be_back_later(
    postgres: PostgresServer, database: str
) -> None:
    name = database.rpartition("/")[2]
    postgres.query(name, f'CREATE ROLE "{name}" LOGIN')
    try:
        async with connected(postgres.url(name, user=name), patience=0.0) as opened:
            postgres.query(name, f'ALTER ROLE "{name}" NOLOGIN')
            ending = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE usename = %s"
            postgres.query(name, ending, name)
            for _ in range(2):
                with pytest.raises(LedgerUnavailable):
                    await opened.read(("SELECT 1", ()))
    finally:
        postgres.query(name, f'DROP ROLE "{name}"')


@pytest.mark.parametrize(
    ("wants", "message", "kind"),
    [
        ({"needs_password": True}, "", FailureKind.REFUSED),
        ({}, 'FATAL:  password authentication failed for user "pay"', FailureKind.REFUSED),
        ({}, 'FATAL:  no pg_hba.conf entry for host "::1"', FailureKind.REFUSED),
        ({}, "SSL, FATAL:  no pg_hba.conf entry\nFATAL:  sorry, too many clients already", FailureKind.LOST),
        ({}, "FATAL:  the database system is starting up\n", FailureKind.LOST),
    ],
)
def test_a_refusal_is_told_from_a_server_that_may_be_back_later(
    wants: dict[str, bool], message: str, kind: FailureKind
) -> None:
    pgconn: Any = SimpleNamespace(**{"needs_password": False, **wants})
    assert refusal(psycopg.OperationalError(message, pgconn=pgconn)).kind is kind


@pytest.mark.parametrize(
    ("error", "is_closed", "kind"),
    [
        (psycopg.OperationalError(), True, FailureKind.LOST),
        (psycopg.InterfaceError(), False, FailureKind.BROKEN),
        (psycopg.DataError(), False, FailureKind.UNSTORABLE),
    ],
)
def test_errors_without_a_code_are_told_apart(
    error: psycopg.Error, is_closed: bool, kind: FailureKind
) -> None:
    assert diagnosed(error, is_closed=is_closed).kind is kind


def server(**changes: Any) -> DatabaseServer:
    """A server that can hold a ledger."""
    identity = ServerIdentity(system=1, timeline=1, started=None)
    facts = {"version": 180004, "is_standby": False, "encoding": "UTF8", "is_encrypted": True}
    return DatabaseServer(**{**facts, "is_pooled": False, "identity": identity, **changes})


@pytest.mark.parametrize(
    ("changes", "unfit"),
    [
        ({}, None),
        ({"version": 130012}, "it is PostgreSQL 13, and 14 or later is needed"),
        ({"is_standby": True}, "it is a standby, which takes no changes"),
        ({"encoding": "SQL_ASCII"}, "its encoding is SQL_ASCII, and UTF8 is needed"),
    ],
)
def test_a_server_must_be_a_primary_of_version_14_or_later_in_utf8(changes: Any, unfit: str | None) -> None:
    assert server(**changes).unfit == unfit


async def test_an_unfit_server_is_refused(postgres: PostgresServer) -> None:
    name = f"ascii_{postgres.port}"
    postgres.query(
        "postgres",
        f"CREATE DATABASE {name} ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0",
    )
    with pytest.raises(DatabaseUnfit, match="SQL_ASCII"):
        await Database.open(postgres.url(name), SYSTEM)


# A pooler, reduced to what can be told of one


class Pooler:
    """Gives a server's sessions to its clients: for as long as they stay, or for a transaction each."""

    def __init__(
        self, target: tuple[str, int], *, by_transaction: bool = False, second: str = "served"
    ) -> None:
        """`second`: a second client is `served`, `refused`, or `kept waiting`."""
        self._target, self._by_transaction, self._second = target, by_transaction, second
        self._idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
        self._hello = b""
        self._open: list[asyncio.StreamWriter] = []

    @contextlib.asynccontextmanager
    async def listening(self) -> AsyncIterator[int]:
        """Context of the pooler. Yields its port."""
        listener = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        try:
            yield listener.sockets[0].getsockname()[1]
        finally:
            listener.close()
            for writer in self._open:
                writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.append(writer)
        with contextlib.suppress(asyncio.IncompleteReadError, asyncio.CancelledError, OSError):
            hello = await self._greeting(reader, writer)
            if self._hello and self._second != "served":
                if self._second == "kept waiting":
                    writer.write(self._hello)
                    await reader.read()
                writer.close()
                return
            if not self._by_transaction:
                session = await self._session(hello)
                writer.write(self._hello)
                while message := await _message(reader):
                    await self._exchange(session, message, reader, writer)
            if not self._hello:
                self._idle.append(await self._session(hello))
            writer.write(self._hello)
            while message := await _message(reader):
                if message[:1] == b"H":
                    continue  # psycopg asks for answers that it has
                session = self._idle.pop() if self._idle else await self._session(hello)
                while await self._exchange(session, message, reader, writer) != b"I":
                    message = await _message(reader)
                self._idle.append(session)

    async def _greeting(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        while True:
            size = await reader.readexactly(4)
            rest = await reader.readexactly(struct.unpack(">i", size)[0] - 4)
            if len(rest) > 4:
                return size + rest
            writer.write(b"N")  # no encryption

    async def _session(self, hello: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection(*self._target)
        self._open.append(writer)
        writer.write(hello)
        greeting = b""
        while True:
            message = await _message(reader)
            kind = message[:1]
            # a pooler makes up the process that a client may cancel
            greeting += b"K" + message[1:5] + struct.pack(">ii", 1, 2) if kind == b"K" else message
            if kind == b"Z":
                self._hello = greeting
                return reader, writer

    async def _exchange(
        self,
        session: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        message: bytes,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> bytes:
        """Pass on what a client sends up to its sync, and the answers. Returns the transaction's state."""
        while True:
            session[1].write(message)
            if message[:1] in (b"S", b"Q"):
                break
            message = await _message(reader)
        while True:
            answer = await _message(session[0])
            writer.write(answer)
            if answer[:1] == b"Z":
                return answer[-1:]


async def _message(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readexactly(5)
    return head + await reader.readexactly(struct.unpack(">i", head[1:])[0] - 4)


@pytest.mark.parametrize("by_transaction", [True, False])
async def test_a_pooler_of_transactions_is_refused_and_one_of_sessions_is_not(
    database: str, postgres: PostgresServer, by_transaction: bool
) -> None:
    async with Pooler(postgres.address, by_transaction=by_transaction).listening() as port:
        url = database.replace(f":{postgres.port}/", f":{port}/") + "?gssencmode=disable&sslmode=disable"
        if by_transaction:
            with pytest.raises(DatabaseUnfit, match="a pooler gives each transaction another session"):
                await Database.open(url, SYSTEM)
        else:
            async with connected(url) as opened:
                assert opened.server.is_pooled


@pytest.mark.parametrize("second", ["refused", "kept waiting"])
async def test_a_pooler_without_a_second_connection_is_said_in_our_words(
    database: str, postgres: PostgresServer, second: str
) -> None:
    async with Pooler(postgres.address, second=second).listening() as port:
        url = database.replace(f":{postgres.port}/", f":{port}/") + "?gssencmode=disable&sslmode=disable"
        with pytest.raises(LedgerUnavailable, match="no answer") as caught:
            await Database.open(url, SYSTEM, answer=0.5)
        assert caught.value.__context__ is None


# Clocks


class Stepped(SystemRuntime):
    """A machine whose clocks are moved by hand."""

    def __init__(self, *, counts_suspension: bool = True) -> None:
        super().__init__()
        self.ticks = 50.0
        self.suspended = 0.0
        self.monotonic = lambda: self.ticks
        self.boottime: Callable[[], float | None] = lambda: (
            self.ticks + self.suspended if counts_suspension else None
        )


def test_the_databases_clock_is_carried_on_by_one_that_counts_suspension() -> None:
    runtime = Stepped()
    clock = DatabaseClock(runtime)
    assert abs(clock.now() - runtime.now().timestamp()) < 5.0
    clock.note(1000.0)
    runtime.ticks += 2.0
    assert clock.now() == 1002.0
    runtime.suspended += 3600.0
    assert clock.now() == 4602.0


def test_without_such_a_clock_the_monotonic_one_has_to_do() -> None:
    runtime = Stepped(counts_suspension=False)
    clock = DatabaseClock(runtime)
    clock.note(1000.0)
    runtime.ticks += 2.0
    assert clock.now() == 1002.0


async def test_the_databases_clock_is_read_when_it_is_connected_to(database: str) -> None:
    async with connected(database) as opened:
        ((there,),) = run(database, "SELECT extract(epoch FROM clock_timestamp())::float8")
        assert abs(opened.clock.now() - there) < 5.0


# Arrays

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
LISTS: list[tuple[str, st.SearchStrategy[Any]]] = [
    ("int2", st.integers(-(2**15), 2**15 - 1)),
    ("int4", st.integers(-(2**31), 2**31 - 1)),
    ("int8", st.integers(-(2**63), 2**63 - 1)),
    ("float8", st.floats(allow_nan=False)),
    ("bool", st.booleans()),
    ("text", texts),
    ("bytea", st.binary(max_size=20)),
]


async def test_lists_arrive_as_arrays_whatever_is_in_them(database: str) -> None:
    examples: list[list[Any]] = []

    @given(st.tuples(*(st.lists(st.none() | values, max_size=5) for _, values in LISTS)))
    @settings(max_examples=30, database=None)
    def collect(lists: tuple[Any, ...]) -> None:
        examples.append(list(lists))

    collect()
    async with connected(database) as opened:
        sql = f"SELECT {', '.join(f'%b::{kind}[]' for kind, _ in LISTS)}"
        for lists in examples:
            (((*found,),),) = await opened.read((sql, lists))
            assert found == lists
