"""Random walks of batches, judged by the service's books: `python -m tests.campaigns.walks 300 40`.

So many walks of so many steps, all processes of each in one loop, over a real socket. Each begins with a
scene that chance seldom comes to. `--ablate RULE` leaves a rule of the engine out, `--ablate all` each in
turn: it must go wrong. Prints how often each event was met. Exits 1 when a walk went wrong, or an ablation
did not.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import logging
import math
import random
import sys
import tempfile
import textwrap
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import attrs
import sqlalchemy as sa

from payments_async.bulk._ledger import figures, ledger, pages
from payments_async.bulk._ledger.ledger import Ledger
from payments_async.bulk._ledger.readings import ReadingStore
from payments_async.bulk._ledger.tables import rows
from payments_async.bulk._protocol import answers
from payments_async.bulk._protocol.outcomes import RowState, Turn
from payments_async.bulk._run import listing, retry, sending
from payments_async.bulk._run.service import Service
from tests.support.walks.scenes import SCENES
from tests.support.walks.steps import STEPS
from tests.support.walks.walk import Breach, Walk

Seen = Counter[tuple[str, str]]
_MEMORY: Final = Path("/dev/shm")

# What stands in the place of a rule, made of the rule


def _own_reference(real: Any) -> Any:
    def prepared(service: Any, *of: Any) -> Any:
        found = real(service, *of)
        own = f"{found.reference}-{id(service)}"
        return attrs.evolve(
            found, reference=own, body=json.dumps({**json.loads(found.body), "reference": own}).encode()
        )

    return prepared


def _decides(kind: answers.Kind, state: RowState) -> Callable[[Any], Any]:
    def made(real: Any) -> Any:
        def word_of(*of: Any) -> Any:
            word = real(*of)
            return attrs.evolve(word, state=state, turn=Turn.NOTHING) if word.kind is kind else word

        return word_of

    return made


def _same_account(real: Any) -> Any:
    return property(lambda service: attrs.evolve(real.fget(service), key="any"))


def _asked_before(real: Any) -> Any:
    def send(*of: Any) -> Any:
        may_send = of[-1]()
        return real(*of[:-1], lambda: may_send)

    return send


def _own_number(real: Any) -> Any:
    def next_generation(row: Any, shown: Any) -> int | str:
        found = real(row, shown)
        return found if isinstance(found, str) else row.generation + 1

    return next_generation


def _row_alone(real: Any) -> Any:
    return sa.update(rows).where(rows.c.id == sa.bindparam("_id")).values(real._values)


def _unseen_too(real: Any) -> Any:
    async def end(store: Any, *, whole: bool) -> None:
        await real(store, whole=whole)
        waits = (
            rows.c.generation > 0,
            rows.c.state == RowState.NEW.value,
            rows.c.seen != store.reading.number,
        )
        allowed = sa.update(rows).where(*waits).values(cleared_at=store.reading.began)
        await store._ledger.database.write(lambda connection: connection.execute(allowed))

    return end


async def _only_own(_: Any) -> bool:
    return True


Replaced = Sequence[tuple[Any, str, Callable[[Any], Any]]]
ABLATIONS: Final[Mapping[str, Replaced]] = {
    "one reference for all processes": [(Service, "_prepared", _own_reference)],
    "409 is no payment": [(sending, "word_of", _decides(answers.Kind.EXISTS, RowState.CREATED))],
    "a time-out is no failure": [(sending, "word_of", _decides(answers.Kind.SILENT, RowState.REJECTED))],
    "the account is pinned": [(Service, "account", _same_account)],
    "the age in take": [(ledger, "YOUNG", lambda _: math.inf)],
    "the age before the POST": [(sending, "InHand", lambda real: lambda row, _, at: real(row, 1e12, at))],
    "the age behind the limiter": [(Service, "send", _asked_before)],
    "a retry counts what the list shows": [(retry, "next_generation", _own_number)],
    "a record names its send": [(ledger, "_RECORD_WORD", _row_alone)],
    "a reading begins at the oldest payout": [
        (listing, "listed_since", lambda _: lambda of, *_: of.known.created_at - 86_400.0)
    ],
    "the first certificate reads all": [(figures, "only_own", lambda _: _only_own)],
    "whole numbers are divided": [
        (figures, "halves", lambda _: lambda units: (units / 10**9, units % 10**9))
    ],
    "422 ends no doubt": [
        (answers, "_refused", lambda real: lambda row, *of: real(attrs.evolve(row, doubted=False), *of))
    ],
    "an outbox row has an environment": [
        (Ledger, "_due", lambda real: lambda it, _: real(it, rows.c.environment))
    ],
    "a reading shows each earlier payout": [
        (pages, "may_be_sent", lambda _: lambda _, shown: not any(each.is_alive for each in shown)),
        (ReadingStore, "end", _unseen_too),
    ],
}
"""{rule: where each part of it stands, under what name, and what stands there instead}."""


@contextlib.contextmanager
def without(rule: str | None, seen: Seen) -> Iterator[None]:
    """Leave a rule out, if one is named; what stands in its place is counted as it is called."""

    def counted(work: Any, name: str) -> Any:
        def counting(*args: Any, **options: Any) -> Any:
            seen["calls", name] += 1
            return work(*args, **options)

        return counting if callable(work) else work

    with contextlib.ExitStack() as patches:
        for owner, name, made in ABLATIONS[rule] if rule else ():
            patches.enter_context(patch.object(owner, name, counted(made(vars(owner)[name]), name)))
        yield


def walked(seed: int, steps: int, seen: Seen) -> str | None:
    with tempfile.TemporaryDirectory(dir=_MEMORY if _MEMORY.is_dir() else None) as folder:
        walk = Walk(Path(folder), random.Random(seed), seen)
        scene, others = SCENES[seed % len(SCENES)], walk.chance.choices(STEPS, k=steps - 1)
        try:
            asyncio.run(walk.play([scene, *others]))
        except Breach as breach:
            return f"seed {seed}, {walk.step}: {breach}"
    return None


def _campaign(seeds: Sequence[int], steps: int) -> int:
    seen = Seen()
    found = [wrong for seed in seeds if (wrong := walked(seed, steps, seen)) and not print(wrong, flush=True)]
    for group in sorted({group for group, _ in seen}):
        counts = Counter({event: count for (of, event), count in seen.items() if of == group})
        text = " · ".join(f"{count:,} {event}" for event, count in counts.most_common() if count)
        print(textwrap.fill(f"{group}: {text}", 110, subsequent_indent="    "))
    return len(found)


def _ablation(rule: str, seeds: Sequence[int], steps: int) -> int:
    """Whether no walk went wrong."""
    seen = Seen()
    with without(rule, seen):
        found = next((wrong for seed in seeds if (wrong := walked(seed, steps, seen))), None)
    calls = {name: count for (of, name), count in seen.items() if of == "calls"}
    calls |= {name: seen["transactions", f"Ledger.{name}"] for name in ("take", "record")}
    print(f"{'red' if found else 'GREEN'} without: {rule}\n  {found}\n  {calls}", flush=True)
    return not found


def main() -> int:
    parser = argparse.ArgumentParser("python -m tests.campaigns.walks", description=__doc__)
    parser.add_argument("walks", type=int, nargs="?", default=300)
    parser.add_argument("steps", type=int, nargs="?", default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--ablate", choices=["all", *ABLATIONS])
    asked = parser.parse_args()
    logging.disable(logging.WARNING)
    seeds, began = range(asked.seed, asked.seed + asked.walks), time.perf_counter()
    if asked.ablate is None:
        wrong = _campaign(seeds, asked.steps)
    else:
        rules = [*ABLATIONS] if asked.ablate == "all" else [asked.ablate]
        wrong = sum(_ablation(rule, seeds, asked.steps) for rule in rules)
    print(f"{len(seeds):,} walks of {asked.steps} steps, {time.perf_counter() - began:,.0f} s, {wrong} wrong")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
