"""Orders that pay a courier: each stands with its payout in one transaction of SQLAlchemy, or neither does.

    uvicorn fastapi_outbox:app
    payments payouts run --ledger orders.db --batch-id couriers --follow    # pays, in processes of their own

`SHOP_DATABASE` is the file of the orders, its owner's alone (chmod 600), as it holds account data.
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from fastapi import FastAPI, HTTPException
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from payments_async import Instrument
from payments_async.bulk import Outbox, metadata

COURIER = Instrument.phone("+233200000001", "GH")
engine = create_async_engine(f"sqlite+aiosqlite:///{os.environ['SHOP_DATABASE']}")
outbox = Outbox("couriers", environment="sandbox")  # of the keys that may pay it: or "live"


class Base(DeclarativeBase):
    """The shop's tables."""


class Order(Base):
    """One order."""

    __tablename__ = "orders"
    number: Mapped[str] = mapped_column(primary_key=True)


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncGenerator[None, None]:
    """Make the tables: the shop's and the outbox's. Alembic takes both: [Base.metadata, metadata]."""
    async with engine.begin() as connection:
        await connection.run_sync(Base.metadata.create_all)
        await connection.run_sync(metadata.create_all)
    yield
    await engine.dispose()


app = FastAPI(lifespan=lifespan)


@app.post("/orders/{number}", status_code=202)
async def take(number: str) -> dict[str, str]:
    """Take an order. The courier is paid if this commits, once, and never otherwise."""
    async with AsyncSession(engine) as session, session.begin():
        session.add(Order(number=number))
        await outbox.add(
            session,
            amount="25.50",
            currency="GHS",
            method="mobile_money",
            instrument=COURIER,
            reference=f"order-{number}",
        )
    return {"order": number}


@app.get("/orders/{number}")
async def look(number: str) -> dict[str, str | None]:
    """What became of the payout."""
    async with AsyncSession(engine) as session:
        row = await outbox.find(session, f"order-{number}")
    if row is None:
        raise HTTPException(404)
    return {"state": row.state, "payout": row.payout_id, "reason": row.reason}
