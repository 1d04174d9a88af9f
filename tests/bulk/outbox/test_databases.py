"""The outbox's tables in a program's own database, and its connections that are not SQLAlchemy's."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
import pytest
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from payments_async.bulk import metadata
from payments_async.sandbox import Sandbox
from payments_sync.bulk import Outbox
from tests.bulk.outbox.conftest import OUTBOX, REQUEST, engine_at
from tests.support.desks import Desk
from tests.support.places import EITHER
from tests.support.sightings import books

OURS = Outbox("payouts", environment="sandbox")


@EITHER
@pytest.mark.usefixtures("tables")
async def test_a_plain_connection_takes_the_compiled_statement(
    place: Path | str, desk: Desk, client: Any, service: Sandbox
) -> None:
    is_file = isinstance(place, Path)
    kind: Any = sqlite if is_file else postgresql
    dialect = kind.dialect(paramstyle="named" if is_file else "pyformat")
    plain: Any = sqlite3.connect(place) if is_file else psycopg.connect(str(place))
    with closing(plain) as connection:
        for reference, end, count in (
            *(("order-1", "commit", 1), ("order-2", "rollback", 1)),
            *(("order-1", "commit", 0), ("order-3", "commit", 1)),
        ):
            added = OURS.statement(**REQUEST, reference=reference).compile(dialect=dialect)
            assert connection.execute(str(added), added.params).rowcount == count
            getattr(connection, end)()
            async with desk.open(place, client, **OUTBOX) as payouts:
                await payouts.run()
                assert (await payouts.row(reference) is None) is (end == "rollback")
    assert books(service) == ["order-1", "order-3"]


@EITHER
@pytest.mark.usefixtures("tables")
async def test_migrations_see_no_difference_once_the_tables_are_there(
    place: Path | str, desk: Desk, client: Any
) -> None:
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    async with desk.open(place, client, batch_id="june"):  # which makes no others
        with engine_at(place) as engine, engine.connect() as connection:
            context = MigrationContext.configure(connection)
            assert compare_metadata(context, metadata) == []


@pytest.mark.parametrize("place", ["postgresql"], indirect=True)
async def test_the_tables_may_be_in_a_schema(place: str, desk: Desk, client: Any, service: Sandbox) -> None:
    with engine_at(place, schema_translate_map={None: "pay"}) as engine:
        with engine.begin() as connection:
            connection.execute(sa.schema.CreateSchema("pay"))
            metadata.create_all(connection)
        with Session(engine) as session, session.begin():
            OURS.add(session, **REQUEST, reference="order-1")
        inside = f"{place}?options={quote('-c search_path=pay')}"
        async with desk.open(inside, client, **OUTBOX) as payouts:
            assert (await payouts.run()).counts["created"] == 1
        with Session(engine) as session:
            row = OURS.find(session, "order-1")
        assert row is not None
        assert row.payout_id == service.books.payouts()[0].id
    with engine_at(place) as engine:
        assert sa.inspect(engine).get_table_names() == []
