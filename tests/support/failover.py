"""A PostgreSQL server with a standby, the fail-over to it, and dumps that are restored."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Final

from tests.support.servers import PASSWORD, CutProxy, PostgresServer, postgres_server

_POLL: Final = 0.01


class ServerPair:
    """A primary, and a standby that streams from it through a proxy."""

    def __init__(self, primary: PostgresServer, line: CutProxy) -> None:
        self.primary, self._line = primary, line
        self.standby = primary.standby(port=line.port)
        self._wait(primary, "SELECT count(*) = 1 FROM pg_stat_replication WHERE state = 'streaming'")

    def url(self, database: str) -> str:
        """The address of both: a client connects to the one that takes changes."""
        hosts = ",".join(f"127.0.0.1:{server.port}" for server in (self.primary, self.standby))
        return f"postgresql://postgres:{PASSWORD}@{hosts}/{database}?target_session_attrs=read-write"

    def synchronise(self) -> None:
        """Make each commit wait for the standby."""
        self.primary.query("postgres", "ALTER SYSTEM SET synchronous_standby_names = '*'")
        self.primary.query("postgres", "SELECT pg_reload_conf()")
        self._wait(self.primary, "SELECT count(*) = 1 FROM pg_stat_replication WHERE sync_state = 'sync'")

    def catch_up(self) -> None:
        """Wait until the standby has all that is committed."""
        ((end,),) = self.primary.query("postgres", "SELECT pg_current_wal_lsn()::text")
        self._wait(self.standby, f"SELECT pg_last_wal_replay_lsn() >= '{end}'")

    def part(self) -> None:
        """Let the standby have all that is committed by now, and nothing that comes later."""
        self.catch_up()
        self._line.cut()

    def fail_over(self) -> None:
        """Stop the primary as a power cut does, and promote the standby."""
        self.primary.stop()
        self.standby.promote()

    @staticmethod
    def _wait(server: PostgresServer, condition: str) -> None:
        while server.query("postgres", condition) != [(True,)]:
            time.sleep(_POLL)


@contextlib.contextmanager
def server_pair() -> Iterator[ServerPair]:
    """Context of a primary with an asynchronous standby."""
    with postgres_server() as primary, CutProxy(primary.address) as line:
        pair = ServerPair(primary, line)
        try:
            yield pair
        finally:
            pair.standby.remove()


def restored(server: PostgresServer, database: str) -> str:
    """Dump a database and restore it as another one. Returns its name."""
    dump = str(server.folder / f"{database}.dump")
    place = ("-h", "127.0.0.1", "-p", str(server.port), "-U", "postgres")
    server.run("pg_dump", *place, "-Fc", "-f", dump, database)
    other = server.make_database()
    server.run("pg_restore", *place, "-d", other, dump)
    return other
