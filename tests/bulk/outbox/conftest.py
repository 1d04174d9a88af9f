"""A program whose payouts stand in transactions of its own: of either surface, on both databases."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Final, cast

import pytest
import pytest_asyncio
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

import payments_async.bulk
import payments_sync.bulk
from payments_async import Instrument
from payments_async.bulk import OutboxRow, metadata
from tests.support.desks import Desk

OUTBOX: Final = {"batch_id": "payouts"}
WALLET: Final[dict[str, Any]] = {"method": "mtn_gh", "instrument": Instrument.phone("+233241234567", "GH")}
REQUEST: Final = {**WALLET, "amount": "10.10", "currency": "GHS"}


def address_of(place: Path | str, driver: str = "") -> str:
    """The address of a place, for SQLAlchemy."""
    if isinstance(place, Path):
        return f"sqlite{driver}:///{place}"
    return place.replace("postgresql://", "postgresql+psycopg://")


@contextmanager
def engine_at(place: Path | str, **options: Any) -> Iterator[sa.Engine]:
    engine = sa.create_engine(address_of(place)).execution_options(**options)
    yield engine
    engine.dispose()


async def settled(made: Any) -> Any:
    """What a call of either surface gives."""
    return await made if inspect.isawaitable(made) else made


class App:
    def __init__(self, surface: str, place: Path | str) -> None:
        self._is_async = surface == "async"
        self._bulk: Any = payments_async.bulk if self._is_async else payments_sync.bulk
        create: Any = create_async_engine if self._is_async else sa.create_engine
        self.engine = create(address_of(place, "+aiosqlite" * self._is_async))
        self.outbox = self.outbox_of("sandbox")

    def outbox_of(self, environment: str, name: str = "payouts") -> Any:
        return self._bulk.Outbox(name, environment=environment)

    @asynccontextmanager
    async def transaction(self, kind: str = "session") -> AsyncIterator[Any]:
        """A transaction of the program's own `session` or `connection`."""
        session: Any = AsyncSession if self._is_async else Session
        made = session(self.engine) if kind == "session" else self.engine.connect()
        if self._is_async:
            async with made, made.begin():
                yield made
        else:
            with made, made.begin():
                yield made

    async def add(self, session: Any, reference: str, *, outbox: Any = None, **changes: Any) -> OutboxRow:
        added = (outbox or self.outbox).add(session, **{**REQUEST, "reference": reference, **changes})
        return cast(OutboxRow, await settled(added))

    async def commit(self, *references: str, **changes: Any) -> None:
        async with self.transaction() as session:
            for reference in references:
                await self.add(session, reference, **changes)

    async def find(self, reference: str) -> Any:
        """What became of one: an OutboxRow, or None."""
        async with self.transaction() as session:
            return await settled(self.outbox.find(session, reference))


@pytest.fixture
def tables(place: Path | str) -> None:
    """The tables at `place`, as a program makes them."""
    if isinstance(place, Path):
        place.touch(0o600)
    with engine_at(place) as engine:
        metadata.create_all(engine)


@pytest_asyncio.fixture
async def app(surface: str, place: Path | str, tables: None) -> AsyncIterator[App]:
    made = App(surface, place)
    yield made
    await settled(made.engine.dispose())


@pytest_asyncio.fixture
async def payouts(desk: Desk, client: Any, app: App, place: Path | str) -> AsyncIterator[Any]:
    async with desk.open(place, client, **OUTBOX) as batch:
        yield batch
