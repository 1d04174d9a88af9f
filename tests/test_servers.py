"""The servers of the tests: they start without any rights, hold data, and can be cut off."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from redis.asyncio import Redis

from tests.support import servers
from tests.support.servers import CutProxy, PostgresServer, ValkeyServer


def test_each_database_is_empty_and_apart(postgres: PostgresServer) -> None:
    first, second = postgres.make_database(), postgres.make_database()
    postgres.query(first, "CREATE TABLE here (number int)")
    tables = "SELECT count(*) FROM pg_tables WHERE tablename = 'here'"
    assert postgres.query(first, tables) == [(1,)]
    assert postgres.query(second, tables) == [(0,)]


async def test_a_cut_passes_nothing_until_it_is_healed(valkey: ValkeyServer) -> None:
    with CutProxy(valkey.address) as proxy:
        client = Redis.from_url(valkey.url(port=proxy.port))
        assert await client.ping()
        proxy.cut()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(client.ping(), 0.1)
        proxy.heal()
        assert await client.ping()
        await client.aclose()


def test_a_server_that_is_cut_off_amid_a_pipeline_gives_its_locks_back(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(servers, "KEEPALIVES", 0.0)
    database = postgres.make_database()
    postgres.query(database, "CREATE TABLE here AS SELECT 1 AS number")
    with (
        CutProxy(postgres.address) as proxy,
        closing(psycopg.connect(postgres.url(database, port=proxy.port))) as connection,
    ):
        line = connection.pgconn
        line.enter_pipeline_mode()
        for statement in (b"BEGIN", b"SELECT * FROM here FOR UPDATE"):
            line.send_query_params(statement, None)
        line.send_flush_request()
        line.flush()
        while line.is_busy():  # until the server has the lock
            line.consume_input()
        proxy.cut()
        assert postgres.query(database, "SELECT * FROM here FOR UPDATE") == [(1,)]


_SERVING = """
import sys
from tests.support.servers import PostgresServer, ValkeyServer
postgres, valkey = PostgresServer().create(), ValkeyServer().start()
print(postgres.folder, postgres.port, valkey.port, flush=True)
sys.stdin.read()
"""


def test_servers_end_when_the_process_that_started_them_is_killed() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _SERVING], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        folder, *ports = process.stdout.readline().split()
        assert all(_listens(int(port)) for port in ports)
        process.kill()
    while Path(folder).exists() or any(_listens(int(port)) for port in ports):
        time.sleep(0.05)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
