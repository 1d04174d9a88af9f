"""Random walks of a batch, judged by the service's books: `python -m tests.campaigns.walks 300 [40]`.

So many walks over a ledger in a file, and the second number over PostgreSQL. At each step an operator's
command, a kill, a fault of the service, a turn of a payout's status, or a second reader; the list may come
late, twice, in another order, without a payout or with a false word. After each step an honest reading of the
list, in small pages. The judge compares certificate, status, snapshot and export with the service's own
books, to the last digit, and each creation with what lived at that moment. `--ablate RULE` leaves a rule out:
the walks must then go wrong. Prints how often each event was met. Exits 1 when a walk went wrong.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import random
import sys
import tempfile
import textwrap
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

from payments_async.bulk._engine import earlier_payouts, reading
from payments_async.bulk._engine.earlier_payouts import EarlierPayouts, SendPermission
from payments_async.bulk._protocol import listed_payouts
from payments_async.bulk._protocol.matching import Match
from payments_async.bulk._protocol.row_state import RowState
from tests.support.batches import steady_ledgers
from tests.support.fleet import UNHURRIED
from tests.support.servers import postgres_server
from tests.support.walks.steps import STEPS
from tests.support.walks.walk import Breach, Walk

Seen = Counter[tuple[str, str]]

# Rules that are left out


def _nothing(*_: Any, **__: Any) -> Any:
    return ()


async def _send(*_: Any, **__: Any) -> SendPermission:
    return SendPermission.SEND


def _first_word_counts(real: Callable[..., Any]) -> Callable[..., Any]:
    def ruled(row: Any, ruling: Any, *rest: Any) -> Any:
        return None if row.is_final and ruling.known == row.known else real(row, ruling, *rest)

    return ruled


def _without_status(real: Callable[..., Any]) -> Callable[..., Any]:
    def ruled(row: Any, ruling: Any, *rest: Any) -> Any:
        return (
            None if row.state is RowState.CREATED and ruling.known == row.known else real(row, ruling, *rest)
        )

    return ruled


def _without_conflicts(real: Callable[..., Any]) -> Callable[..., Any]:
    def extra(row: Any, ruling: Any, payouts: Any) -> Any:
        return () if ruling.known.state is RowState.CONFLICT else real(row, ruling, payouts)

    return extra


def _any_content(real: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *sides: Match.EQUAL if real(*sides) is Match.OTHER_BODY else real(*sides)


@contextlib.contextmanager
def _without_older_generations() -> Iterator[None]:
    """Nothing asks for earlier payouts either, before a later one is sent."""
    with (
        patch.object(reading, "later_references", _nothing),
        patch.object(earlier_payouts, "lacks_earlier", _nothing),
    ):
        yield


ABLATIONS: Final[Mapping[str, Callable[[], Any]]] = {
    "status is compared": lambda: patch.object(
        listed_payouts, "_outcome", _without_status(listed_payouts._outcome)
    ),
    "older generations are looked at": _without_older_generations,
    "the latest word counts": lambda: patch.object(
        listed_payouts, "_outcome", _first_word_counts(listed_payouts._outcome)
    ),
    "conflicts are counted": lambda: patch.object(
        listed_payouts, "_extra", _without_conflicts(listed_payouts._extra)
    ),
    "content is compared": lambda: patch.object(
        listed_payouts, "match_of", _any_content(listed_payouts.match_of)
    ),
    "an earlier payout is looked for before a later one is sent": lambda: patch.multiple(
        EarlierPayouts, permission=_send, seconds_left=900.0
    ),
}
"""{rule: leaves it out}."""


@contextlib.contextmanager
def without(rule: str | None) -> Iterator[None]:
    """Leave a rule out, if one is named."""
    with ABLATIONS[rule]() if rule else contextlib.nullcontext():
        yield


async def walked(place: Path | str, seed: int, seen: Seen) -> str | None:
    """Play one walk. Gives what went wrong."""
    with steady_ledgers(), contextlib.ExitStack() as settings:
        for owner, name, value in UNHURRIED:
            settings.enter_context(patch.object(owner, name, value))
        try:
            await Walk(place, random.Random(seed), seen).play(STEPS)
        except Breach as breach:
            return str(breach)
    return None


def printed(seen: Seen) -> Iterator[str]:
    """The counts of each group of events, for a closing note."""
    for group in sorted({group for group, _ in seen}):
        counts = Counter({event: count for (of, event), count in seen.items() if of == group})
        text = " · ".join(f"{count:,} {event}" for event, count in counts.most_common() if count)
        yield textwrap.fill(f"{group}: {text}", 110, subsequent_indent="    ")


def main() -> int:
    """Walk, and print what happened; the exit code."""
    parser = argparse.ArgumentParser("python -m tests.campaigns.walks", description=__doc__)
    parser.add_argument("walks", type=int, nargs="?", default=300)
    parser.add_argument("on_postgresql", type=int, nargs="?", default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--ablate", choices=[*ABLATIONS])
    asked = parser.parse_args()
    logging.disable(logging.WARNING)
    began, seen, breaches = time.perf_counter(), Seen(), list[str]()

    def walk(place: Path | str, name: str, seed: int) -> bool:
        if found := asyncio.run(walked(place, seed, seen)):
            breaches.append(f"{name}, seed {seed}: {found}")
            print(breaches[-1], flush=True)
        return bool(found and asked.ablate)

    with tempfile.TemporaryDirectory() as folder, without(asked.ablate):
        for seed in range(asked.seed, asked.seed + asked.walks):
            if walk(Path(folder) / str(seed), "file", seed):
                break
    if asked.on_postgresql:
        with postgres_server() as server, without(asked.ablate):
            for seed in range(asked.seed, asked.seed + asked.on_postgresql):
                with server.database() as name:
                    if walk(server.url(name), "PostgreSQL", seed):
                        break
    print("\n".join(printed(seen)))
    print(
        f"{asked.walks:,} + {asked.on_postgresql:,} walks, {time.perf_counter() - began:.0f} s, "
        f"{len(breaches)} breaches"
    )
    return int(bool(breaches))


if __name__ == "__main__":
    sys.exit(main())
