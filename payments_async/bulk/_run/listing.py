"""Reads the service's list for a batch, to its end: one process at a time; the next goes on there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

from ..._emitter import logger
from ...errors import APIStatusError, SearchIncomplete
from ...models._masking import clean
from .._ledger.figures import Awaited
from .._ledger.ledger import Ledger
from .._ledger.readings import ReadingLost, ReadingStore
from .service import PayoutList, Service

_RENEW_EVERY: Final = 20.0
_DAY: Final = 86_400.0


def listed_since(ledger: Ledger, awaited: Awaited | None = None) -> float:
    """From when on the list surely shows every payout of a batch that this ledger knows of.

    A day before it was loaded, or before the oldest payout that an answer or a reading has shown. Where only
    the ends of payouts are `awaited`, a day before the oldest of these was created.
    """
    if awaited is not None and awaited.since is not None:
        return awaited.since - _DAY
    batch = ledger.known
    oldest = batch.created_at if batch.oldest is None else min(batch.created_at, batch.oldest)
    return oldest - _DAY


async def read_list(
    ledger: Ledger,
    service: Service,
    *,
    awaited: Awaited | None = None,
    all_of_it: bool = False,
    shows_all: bool = True,
    keeps: bool = False,
    on_page: Callable[[], object] | None = None,
    may_go_on: Callable[[], bool] | None = None,
) -> ReadingStore:
    """Read what surely shows every payout of the batch; all of the list where a part lacks one.

    `awaited`: only what may show the ends of these. `all_of_it`: all of the list in any case. `shows_all`:
    the payouts of created rows are waited for too. `keeps`: the reading stays this process's for another
    minute. `may_go_on`: asked before each page.
    Raises ReadingLost while another process reads, PaymentsError when it cannot be read to its end, and
    LedgerError. What was read until then is recorded, and the next reading goes on there.
    """
    read = partial(_read, ledger, service, on_page=on_page, may_go_on=may_go_on, keeps=keeps)
    if awaited is not None:
        return await read(listed_since(ledger, awaited), is_whole=False)
    store = await read(None if all_of_it else listed_since(ledger))
    is_part = store.reading.since is not None
    if is_part and ((shows_all and store.auditor.missing) or await store.lacks()):
        return await read(None)
    return store


async def _read(
    ledger: Ledger,
    service: Service,
    since: float | None,
    *,
    on_page: Callable[[], object] | None,
    may_go_on: Callable[[], bool] | None,
    keeps: bool,
    is_whole: bool = True,
) -> ReadingStore:
    """Read the list to its end, and record what it shows.

    `since`: the service's time from which on; None for all of it. `is_whole`: it surely shows every payout of
    the batch, so that one which it does not show is absent.
    """
    store = await ReadingStore.begin(ledger, since)
    is_begun = store.reading.cursor is None
    try:
        async with _renewed(store, service):
            walk = PayoutList(service, store.reading.since, store.reading.cursor)
            while not walk.is_over:
                if may_go_on is not None and not may_go_on():
                    raise SearchIncomplete("the reading was stopped", pages=walk.pages, cursor=walk.cursor)
                unread = walk.unread
                page = await walk.page()
                store.auditor.unread += walk.unread - unread
                await store.take(page, None if walk.is_over else walk.cursor)
                is_begun = True
                if on_page is not None:
                    on_page()
            await store.end(whole=is_whole and not store.auditor.unread)
        if not keeps:
            await store.give_up()
    except ReadingLost:
        raise
    except BaseException as error:
        is_refused = isinstance(error, APIStatusError) and not error.is_temporary
        await store.give_up(anew=is_refused and not is_begun)  # it may know an earlier reader's place no more
        raise
    for turn in store.auditor.turns:
        logger.warning("%s", clean(turn))
    await ledger.refresh()
    return store


@asynccontextmanager
async def _renewed(store: ReadingStore, service: Service) -> AsyncIterator[None]:
    """Context in which the reading stays this process's, also while a page waits for a 429."""

    async def renew() -> None:
        while True:
            await service.runtime.sleep(_RENEW_EVERY)
            try:
                await store.renew()
            except ReadingLost:  # the next page finds out
                return

    renewing = asyncio.ensure_future(renew())
    try:
        yield
    finally:
        renewing.cancel()
        await asyncio.wait([renewing])
