"""Ours: an answer read into records, as the request path does it, in turn with `json.loads` of its bytes."""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Callable

from benchmarks import inside
from benchmarks.worker import serve

READ = {
    "one": (inside.READ_ONE, inside.ONE),
    "later": (inside.READ_ONE, inside.LATER),
    "page": (inside.READ_PAGE, inside.PAGE),
}


def timed(work: Callable[[], object], times: int) -> float:
    """CPU seconds for one."""
    started = time.process_time()
    for _ in range(times):
        work()
    return (time.process_time() - started) / times


def both(what: str, times: int) -> dict[str, float]:
    """One round."""
    call, answer = READ[what]
    theirs = timed(lambda: json.loads(answer.body), times)
    return {"ours": timed(lambda: inside.read(call, answer), times), "theirs": theirs}


if __name__ == "__main__":
    inside.check()
    gc.collect()
    gc.freeze()  # so that a collection looks at what was decoded, whosever turn it is, not at all modules
    serve(both)
