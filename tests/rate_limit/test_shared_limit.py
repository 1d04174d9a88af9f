"""Two processes that share one limit through a real store. The long form: `tests.campaigns.shared_limit`."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.campaigns.shared_limit import OnPostgres, OnValkey, Run, StoreServer, run
from tests.support.servers import PostgresServer, ValkeyServer


def share(store: StoreServer) -> Run:
    return run(store, 3.0, limit=6_000, processes=2, tasks=48, warm_up=1.0)


@pytest.mark.slow
def test_two_processes_share_a_limit(postgres: PostgresServer, valkey: ValkeyServer) -> None:
    with ThreadPoolExecutor() as both:
        runs = list(both.map(share, (OnPostgres(postgres), OnValkey(valkey))))
    for found in runs:
        assert found.fullest_second <= 100 + 25 + 34  # a burst saved up, and two groups that counted late
        assert found.used >= 0.6
        assert found.least_share >= 0.5
        assert found.round_trips <= 50.0
        assert not found.failed
