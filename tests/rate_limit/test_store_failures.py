"""Stores that cannot be used, or not now: what is raised, what helps, and that no password is shown."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
import pytest_asyncio
import redis.asyncio

from payments_async import ConfigurationError
from tests.support.limit_stores import BlockRequest, BlockStore, StoreUnavailable, open_store
from tests.support.servers import PASSWORD, CutProxy, PostgresServer, ValkeyServer, free_port, postgres_server

ROW = "https://api.example/v1 3f9a write"
ASK = BlockRequest(wanted=1, pause=0.0, step=0.001, saved=0.25, ahead=1.0)
STORE = "payments_async._rate_limit.store_postgresql"
KEY = "payments:limit:https://api.example/v1 3f9a write"

Open = Callable[[str], BlockStore]


@pytest_asyncio.fixture
async def opened() -> AsyncIterator[Open]:
    """Opens stores, and closes them afterwards."""
    stores: list[BlockStore] = []

    def open_it(url: str, **options: bool) -> BlockStore:
        stores.append(open_store(url, **options))
        return stores[-1]

    yield open_it
    for each in stores:
        await each.aclose()
        await each.aclose()


async def refused(limits: BlockStore, kind: type[Exception] = StoreUnavailable) -> str:
    """What a reservation is refused with."""
    with pytest.raises(kind) as caught:
        await limits.reserve(ROW, ASK)
    assert PASSWORD not in str(caught.value)
    assert caught.value.__cause__ is None
    return str(caught.value)


async def granted(limits: BlockStore) -> int:
    return (await limits.reserve(ROW, ASK)).granted


# Addresses


@pytest.mark.parametrize(
    "url",
    [
        f"mysql://root:{PASSWORD}@127.0.0.1/db",
        f"{PASSWORD}",
        "",
        f"postgresql://postgres:{PASSWORD}@[::1/db",
        f"redis://:{PASSWORD}@127.0.0.1:port/0",
        f"redis://:{PASSWORD}@127.0.0.1/0?socket_timeout=soon",
        *(f"{scheme}://:{PASSWORD}@db..internal/0" for scheme in ("postgresql", "redis")),
        *(
            f"{scheme}://user:1{mark}{PASSWORD}@db.test{more}"
            for scheme in ("postgresql", "redis")
            for mark in ("/", ":1/", "@1/")
            for more in ("", "/0")
        ),
        *(f"postgresql://user:1{mark}{PASSWORD}@db.test/0" for mark in ("@", "@1:", "?@", "/?dbname=")),
        *(f"redis://user:1{mark}{PASSWORD}@db.test" for mark in ("?", "#", "?db=")),
    ],
)
def test_an_address_of_no_store_is_refused_and_not_shown(url: str) -> None:
    with pytest.raises(ConfigurationError, match=r"address") as caught:
        open_store(url)
    assert PASSWORD not in str(caught.value)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


@pytest.mark.parametrize(
    ("url", "why"),
    [
        (f"postgresql://pay:{PASSWORD}@db.test/x", "sslmode=verify-full is not set"),
        (f"postgresql://pay:{PASSWORD}@db.test/x?sslmode=disable", "sslmode=verify-full is not set"),
        (f"redis://:{PASSWORD}@db.test/0", "it is not rediss://"),
        (f"rediss://:{PASSWORD}@db.test/0?ssl_cert_reqs=none", "ssl_cert_reqs or ssl_check_hostname lets"),
        (f"rediss://:{PASSWORD}@db.test/0?ssl_cert_reqs=optional", "ssl_cert_reqs or ssl_check_hostname"),
        (f"rediss://:{PASSWORD}@db.test/0?ssl_check_hostname=false", "ssl_cert_reqs or ssl_check_hostname"),
    ],
)
def test_a_store_on_another_host_needs_a_checked_certificate_or_the_word_that_it_does_not(
    url: str, why: str
) -> None:
    with pytest.raises(ConfigurationError, match=f"it is on another host, and {why}") as caught:
        open_store(url)
    assert str(caught.value).endswith("insecure_database=True (--insecure-database) allows it")
    assert PASSWORD not in str(caught.value)
    assert open_store(url, insecure_database=True)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://db.test/x?sslmode=verify-full",
        "rediss://db.test/0",
        "redis://localhost",
        "redis://[::1]/0",
        "unix:///run/redis.sock".replace("unix", "redis"),
    ],
)
def test_a_store_that_nobody_else_can_read_is_taken(url: str) -> None:
    assert open_store(url)


async def test_a_store_whose_connection_came_out_elsewhere_is_refused(
    postgres: PostgresServer, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = opened(postgres.url(postgres.make_database()))
    monkeypatch.setattr("payments_async._postgresql.exposure", lambda parameters: "it is on another host")
    assert (await refused(limits, ConfigurationError)).endswith(": it is on another host")


@pytest.mark.parametrize(
    ("url", "module", "extra"),
    [
        ("postgres://127.0.0.1/db", "store_postgresql", "postgresql"),
        ("rediss://127.0.0.1", "store_redis", "redis"),
    ],
)
def test_a_missing_library_is_named(
    url: str, module: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, f"payments_async._rate_limit.{module}", None)
    with pytest.raises(ConfigurationError, match=rf'pip install "payments-sdk\[{extra}\]"'):
        open_store(url)


# Either server


@pytest.fixture(params=["postgres", "valkey"])
def proxied(request: pytest.FixtureRequest) -> Iterator[tuple[str, CutProxy]]:
    """A server's address through a proxy."""
    server: Any = request.getfixturevalue(request.param)
    database = [server.make_database()] if request.param == "postgres" else []
    with CutProxy(server.address) as proxy:
        yield server.url(*database, port=proxy.port), proxy


@contextmanager
def impatient(limits: Any) -> Iterator[None]:
    """A fifth of a second for each round trip, while none is to succeed."""
    with pytest.MonkeyPatch.context() as short:
        short.setattr(f"{STORE}.PATIENCE", 0.2)
        short.setattr(f"{STORE}.CONNECTING", 0.2)
        if type(limits).__name__ == "RedisBlockStore":
            pool = limits._client.connection_pool
            short.setitem(pool.connection_kwargs, "socket_timeout", 0.2)
            for connection in pool._available_connections:
                short.setattr(connection, "socket_timeout", 0.2)
        yield


@pytest.mark.parametrize("reset", [False, True])
async def test_a_store_that_is_cut_off_is_used_again_afterwards(
    proxied: tuple[str, CutProxy], reset: bool, opened: Open
) -> None:
    url, proxy = proxied
    limits = opened(url)
    assert await granted(limits) == 1
    proxy.cut(reset=reset)
    with impatient(limits):
        for _ in range(2):
            said = await refused(limits)
            assert "cannot be reached, or did not answer in time" in said
            assert "None" not in said
    proxy.heal()
    assert await granted(limits) == 1


@pytest.mark.parametrize("scheme", ["postgresql", "redis"])
async def test_a_store_that_is_not_there(scheme: str, opened: Open) -> None:
    port = free_port()
    limits = opened(f"{scheme}://user:{PASSWORD}@127.0.0.1:{port}/0")
    said = await refused(limits)
    assert said.startswith(f"the limit store {scheme}://127.0.0.1:{port}")
    assert "cannot be reached" in said
    assert "None" not in said


async def test_a_caller_who_is_cancelled_leaves_the_store_usable(
    proxied: tuple[str, CutProxy], opened: Open
) -> None:
    url, proxy = proxied
    limits = opened(url)
    await granted(limits)
    proxy.cut()
    asking = asyncio.ensure_future(limits.reserve(ROW, ASK))
    done, _ = await asyncio.wait({asking}, timeout=0.05)
    assert not done
    asking.cancel()
    proxy.heal()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert await granted(limits) == 1


# PostgreSQL


async def test_an_old_postgresql_is_refused(
    database: str, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("payments_async._postgresql.OLDEST", 990_000)
    assert "is older than PostgreSQL 99" in await refused(opened(database), ConfigurationError)


async def test_missing_rights_are_named(postgres: PostgresServer, opened: Open) -> None:
    name = postgres.make_database()
    postgres.query(name, "CREATE ROLE guest LOGIN")
    limits = opened(postgres.url(name, user="guest"))
    assert "GRANT USAGE, CREATE ON SCHEMA payments" in await refused(limits, ConfigurationError)
    postgres.query(name, "CREATE SCHEMA payments")
    postgres.query(name, "GRANT USAGE, CREATE ON SCHEMA payments TO guest")
    assert await granted(limits) == 1


@pytest.fixture
def guarded(postgres: PostgresServer) -> Iterator[PostgresServer]:
    """The server; it asks `alice` and `eve` for a password, and refuses `mallory` by its rules."""
    rules = postgres.data / "pg_hba.conf"
    before = rules.read_text()
    postgres.query("postgres", "CREATE ROLE alice LOGIN PASSWORD 'right'")
    rules.write_text(
        "host all alice 127.0.0.1/32 scram-sha-256\nhost all eve 127.0.0.1/32 password\n"
        f"host all mallory 127.0.0.1/32 reject\n{before}"
    )
    postgres.query("postgres", "SELECT pg_reload_conf()")
    while True:  # until the server has read them
        try:
            psycopg.connect(postgres.url(user="alice")).close()
        except psycopg.OperationalError:
            break
    yield postgres
    rules.write_text(before)
    postgres.query("postgres", "SELECT pg_reload_conf()")
    postgres.query("postgres", "DROP ROLE alice")


@pytest.mark.parametrize(
    ("user", "name"),
    [
        (f"alice:{PASSWORD}", "postgres"),
        ("alice", "postgres"),
        ("mallory", "postgres"),
        ("nobody", "postgres"),
        ("postgres", "nothing"),
    ],
)
async def test_a_wrong_user_password_or_database_is_refused(
    user: str, name: str, guarded: PostgresServer, opened: Open
) -> None:
    limits = opened(f"postgresql://{user}@127.0.0.1:{guarded.port}/{name}")
    said = await refused(limits, ConfigurationError)
    assert said.endswith(f"/{name} refuses the user, the password or the database's name")


async def test_a_password_is_not_given_to_a_server_that_asks_for_it_in_clear(
    guarded: PostgresServer, opened: Open
) -> None:
    said = await refused(opened(guarded.url(user="eve")), ConfigurationError)
    assert said.endswith(
        ": it asks for the password in a form that an impostor could use: let it ask for SCRAM "
        "(password_encryption = scram-sha-256), or set sslmode=verify-full, or require_auth in the address"
    )


@pytest.mark.parametrize(("mode", "is_given"), [(0o777, False), (0o1777, False), (0o755, True)])
async def test_a_password_goes_to_a_socket_only_where_not_everybody_may_bind_one(
    opened: Open, tmp_path: Path, mode: int, *, is_given: bool
) -> None:
    heard = list[bytes]()

    async def impostor(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(10_000)
        writer.write(b"R\0\0\0\x08\0\0\0\x03")  # asks for the password in clear
        heard.append(await reader.read(10_000))
        writer.close()

    folder = tmp_path / "run"
    folder.mkdir()
    folder.chmod(mode)
    async with await asyncio.start_unix_server(impostor, folder / ".s.PGSQL.5432"):
        kind = StoreUnavailable if is_given else ConfigurationError
        await refused(opened(f"postgresql://alice:{PASSWORD}@/payroll?host={folder}"), kind)
    assert (PASSWORD.encode() in b"".join(heard)) == is_given


async def test_a_table_of_another_version_is_refused(
    postgres: PostgresServer, database: str, opened: Open
) -> None:
    with psycopg.connect(database, autocommit=True) as control:
        control.execute("CREATE SCHEMA payments")
        control.execute("CREATE TABLE payments.limits (address text, fingerprint text, kind text)")
    assert "another version" in await refused(opened(database), ConfigurationError)


async def test_a_lost_table_is_made_again(database: str, opened: Open) -> None:
    limits = opened(database)
    assert await granted(limits) == 1
    with psycopg.connect(database, autocommit=True) as control:
        control.execute("DROP TABLE payments.limits")
    assert "42P01" in await refused(limits)
    assert await granted(limits) == 1


async def test_the_table_is_not_written_to_the_log_that_replicas_follow(database: str, opened: Open) -> None:
    await granted(opened(database))
    with psycopg.connect(database) as control:
        found = control.execute("SELECT relpersistence FROM pg_class WHERE oid = 'payments.limits'::regclass")
        assert found.fetchone() == ("u",)


async def test_nothing_is_prepared_as_a_pooler_may_change_the_session(database: str, opened: Open) -> None:
    limits: Any = opened(database)
    for _ in range(8):
        assert await granted(limits) == 1
    found = await limits._connection.execute("SELECT count(*) FROM pg_prepared_statements")
    assert await found.fetchone() == (0,)


async def test_of_several_servers_the_one_that_takes_changes_is_used(
    postgres: PostgresServer, opened: Open
) -> None:
    with postgres_server(options=["default_transaction_read_only=on"]) as read_only:
        hosts = ",".join(f"127.0.0.1:{server.port}" for server in (read_only, postgres))
        assert await granted(opened(f"postgresql://postgres:{PASSWORD}@{hosts}/postgres")) == 1


# Valkey


@pytest_asyncio.fixture
async def control(valkey: ValkeyServer) -> AsyncIterator[Any]:
    """A connection of the test's own to an empty server."""
    client = redis.asyncio.Redis.from_url(valkey.url())
    await client.flushall()
    yield client
    await client.flushall()
    await client.aclose()


async def test_something_else_in_the_key_is_refused(control: Any, valkey: ValkeyServer, opened: Open) -> None:
    await control.hset(KEY, "mine", "1")
    assert KEY in await refused(opened(valkey.url()), ConfigurationError)


@pytest.mark.parametrize("rights", ["-eval", "-set"])
async def test_forbidden_commands_are_named(
    rights: str, control: Any, valkey: ValkeyServer, opened: Open
) -> None:
    await control.execute_command(
        "ACL", "SETUSER", "guest", "reset", "on", f">{PASSWORD}", "~*", "+@all", *rights.split()
    )
    limits = opened(f"redis://guest:{PASSWORD}@127.0.0.1:{valkey.port}/0")
    assert "allow its user EVAL" in await refused(limits, ConfigurationError)
    await control.execute_command("ACL", "DELUSER", "guest")


@pytest.mark.parametrize(
    ("user", "password"),
    [("", "right"), (f":{PASSWORD}@", "right"), (f"nobody:{PASSWORD}@", "right"), (f":{PASSWORD}@", "")],
)
async def test_a_wrong_missing_or_needless_password_is_refused(
    user: str, password: str, control: Any, valkey: ValkeyServer, opened: Open
) -> None:
    await control.config_set("requirepass", password)
    try:
        limits = opened(f"redis://{user}127.0.0.1:{valkey.port}/0")
        assert "refuses the user or the password" in await refused(limits, ConfigurationError)
    finally:
        await control.config_set("requirepass", "")


async def test_a_server_that_takes_no_changes_is_unavailable(
    control: Any, valkey: ValkeyServer, opened: Open
) -> None:
    limits = opened(valkey.url())
    await control.execute_command("REPLICAOF", "127.0.0.1", str(free_port()))
    try:
        await refused(limits)
    finally:
        await control.execute_command("REPLICAOF", "NO", "ONE")
    assert await granted(limits) == 1
