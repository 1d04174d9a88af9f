"""Ours, from blocking code. `blocking_ours payments|stock|portal URL`.

`payments` is the blocking client, `stock` the same without uvloop, `portal` the awaited client behind
anyio's `portal.call`, which is what one would write without a bridge.
"""

from __future__ import annotations

import cProfile
import sys
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial

from benchmarks.bodies import KEY, UNPACED, arguments
from benchmarks.contenders.blocking_rounds import Call, measured
from benchmarks.worker import functions, serve
from payments_async import AsyncPayments

_KEPT = ExitStack()
"""What stays open until the worker is killed."""


def payments(base_url: str) -> Callable[[], Call]:
    """One client for all threads."""
    from payments_sync import Payments

    client = Payments(KEY, base_url=base_url, limits=UNPACED)
    return lambda: lambda: client.payouts.create(**arguments())


def stock(base_url: str) -> Callable[[], Call]:
    """As `payments` where uvloop is not installed."""
    sys.modules["uvloop"] = None  # type: ignore[assignment] # how an import is made to fail
    return payments(base_url)


def portal(base_url: str) -> Callable[[], Call]:
    """The awaited client on a portal of one's own, with uvloop."""
    from anyio.from_thread import start_blocking_portal

    client = AsyncPayments(KEY, base_url=base_url, limits=UNPACED)
    call = _KEPT.enter_context(start_blocking_portal("asyncio", {"use_uvloop": True})).call
    return lambda: lambda: call(partial(client.payouts.create, **arguments()))


CLIENTS = {"payments": payments, "stock": stock, "portal": portal}


def profiled(base_url: str, times: int) -> str:
    """Where the time of calls from one thread goes: in that thread, and in the loop's."""
    from payments_sync import Payments  # not above: `stock` must come before it

    client = Payments(KEY, base_url=base_url, limits=UNPACED)
    queue, caller, loop = client._bridge._queue(), cProfile.Profile(), cProfile.Profile()

    def calls() -> None:
        for _ in range(times):
            client.payouts.create(**arguments())

    client.payouts.create(**arguments())
    queue.call_soon(loop.enable)
    caller.runcall(calls)
    queue.call_soon(loop.disable)
    client.close()
    return f"In the caller's thread\n{functions(caller)}\nIn the loop's thread\n{functions(loop)}"


def main(name: str, base_url: str) -> None:
    """Serve rounds."""
    new_call = CLIENTS[name](base_url)
    serve(
        lambda threads, seconds: measured(new_call, threads=threads, seconds=seconds),
        partial(profiled, base_url),
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
