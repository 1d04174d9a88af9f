"""One limit for several processes: the options, and clients of both surfaces on real stores."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from payments_async import AsyncPayments, ConfigurationError, RateLimits
from payments_async.sandbox import Sandbox
from tests.conftest import BASE_URL, KEY
from tests.support.canary import NEEDLE, shown_by, told_by
from tests.support.jumping import JumpingRuntime
from tests.support.limit_stores import ADDRESS
from tests.support.servers import ValkeyServer
from tests.support.surfaces import make_client
from tests.sync.scenes import run_with_service

CHANGES = {
    "none": ("", ""),
    "postgresql": ("redis:", "postgresql:"),
    "scheme": ("redis:", "mysql:"),
    "port": (":9", ":x"),
    "option": ("redis:", "postgresql://h?none=%&"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_the_stores_password_is_in_no_repr_message_or_traceback(
    surface: str, change: tuple[str, str]
) -> None:
    address = f"redis://user:{NEEDLE}@127.0.0.1:9/0".replace(*change)
    try:
        client = make_client(surface, KEY, base_url=BASE_URL, runtime=JumpingRuntime(), limit_store=address)
    except ConfigurationError as error:
        shown = told_by(error) + shown_by(error)
    else:
        inner = client if surface == "async" else client._blocking._async
        shown = f"{client!r} {inner._pipeline.settings!r} {vars(inner._pipeline.keys)!r}"
    assert NEEDLE not in shown


# --- Clients of one key in one process ---


@pytest.fixture
def client() -> Callable[..., AsyncPayments]:
    """Makes clients of one process that send nothing."""
    return partial(AsyncPayments, KEY, base_url=BASE_URL)


def store_of(client: AsyncPayments) -> Any:
    return client._pipeline.keys.of(client._internal.key()).limiter.store


def test_they_share_one_store_whoever_brings_it(client: Callable[..., AsyncPayments]) -> None:
    first, second = client(), client(limit_store=ADDRESS)
    assert store_of(first) is store_of(second) is not None
    assert store_of(client()) is store_of(second)
    with pytest.raises(ConfigurationError, match="different limit stores"):
        client(limit_store=ADDRESS.replace("/0", "/1"))
    assert store_of(first).address == ADDRESS


def test_the_highest_number_of_processes_holds(client: Callable[..., AsyncPayments]) -> None:
    one = client(limit_store=ADDRESS, expected_workers=4)
    assert store_of(one).workers == 4
    for workers in (None, 8, 2):
        client(limit_store=ADDRESS, expected_workers=workers)
    assert store_of(one).workers == 8


PART: dict[str, Any] = {"limits": RateLimits().share(0.5)}
STORE: dict[str, Any] = {"limit_store": ADDRESS}


@pytest.mark.parametrize(("first", "second"), [(STORE, PART), (PART, STORE)])
def test_a_part_of_the_limits_and_a_store_are_refused_in_two_clients_too(
    client: Callable[..., AsyncPayments], first: dict[str, Any], second: dict[str, Any]
) -> None:
    kept = client(**first)
    before = kept.limits_snapshot()["write"].limit
    with pytest.raises(ConfigurationError, match="share"):
        client(**second)
    assert kept.limits_snapshot()["write"].limit == before == (60_000 if first is STORE else 30_000)


# --- Real stores ---


@pytest.fixture(params=["valkey", "postgresql"])
def store(request: pytest.FixtureRequest) -> str:
    if request.param == "postgresql":
        return str(request.getfixturevalue("database"))
    valkey: ValkeyServer = request.getfixturevalue("valkey")
    return valkey.url(database=1)


def test_a_forked_child_asks_for_itself(sandbox: Sandbox, store: str) -> None:
    script = f"""
import asyncio
from payments_async import AsyncPayments
blocking = Payments(key, base_url=base_url, limit_store={store!r})
client = AsyncPayments(key, base_url=base_url, limit_store={store!r})

async def calls(name):
    await asyncio.gather(*(client.payouts.create(**payout(f"{{name}}-{{n}}")) for n in range(5)))
    await client.aclose()

blocking.payouts.create(**payout("before"))
children = []
for name in ("one", "other"):
    pid = os.fork()
    if pid == 0:
        before = blocking.limits_snapshot()["write"].used
        asyncio.run(calls(name))
        blocking.payouts.create(**payout(name))
        after = blocking.limits_snapshot()["write"].used
        sys.stdout.write(f"{{before}} {{after}}\\n")  # at once: the other child writes too
        sys.stdout.flush()
        sys.exit(0)
    children.append(pid)
    blocking.payouts.create(**payout(f"parent-{{name}}"))
print([os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children])
blocking.payouts.create(**payout("after"))
blocking.close()
"""
    assert sorted(run_with_service(sandbox, script).split()) == ["0", "0", "0]", "6", "6", "[0,"]
