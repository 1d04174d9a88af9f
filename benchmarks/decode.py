"""What does a typed record cost, against `json.loads` of the same bytes?"""

from __future__ import annotations

import json
import time
from collections.abc import Callable

from benchmarks.bodies import PAGE_ANSWER, PAYOUT_ANSWER
from benchmarks.pairs import HEADER, ratios, row
from payments_async import Payout, _codec


def timed(work: Callable[[], object], times: int) -> float:
    """CPU seconds for one."""
    started = time.process_time()
    for _ in range(times):
        work()
    return (time.process_time() - started) / times


def page(body: bytes) -> list[Payout]:
    """A page's records."""
    return [_codec.structure(item, Payout) for item in _codec.parse(body)["data"]]


def main() -> None:
    """Print the table."""
    print("### Decoding over `json.loads`\n")
    print(HEADER)
    one = ratios(
        lambda: timed(lambda: _codec.structure(_codec.parse(PAYOUT_ANSWER)["data"], Payout), 5_000),
        lambda: timed(lambda: json.loads(PAYOUT_ANSWER), 5_000),
    )
    print(row("one payout", one))
    many = ratios(
        lambda: timed(lambda: page(PAGE_ANSWER), 60), lambda: timed(lambda: json.loads(PAGE_ANSWER), 60)
    )
    print(row("a page of 100", many))


if __name__ == "__main__":
    main()
