"""What is added stands in the program's own transaction and tables: paid once if committed, else never."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any
from unicodedata import normalize
from urllib.parse import quote

import psycopg
import pytest
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

import payments_sync.bulk
from payments_async import InvalidRequest
from payments_async.bulk import BulkError, Outbox, OutboxConflict, OutboxRow, Outcome, metadata
from payments_async.sandbox import Sandbox
from tests.bulk.outbox.conftest import OUTBOX, REQUEST, App, engine_at, settled
from tests.support.batches import item, items
from tests.support.desks import Desk
from tests.support.places import EITHER
from tests.support.sightings import books

OURS = Outbox("payouts", environment="sandbox")
BLOCKING = payments_sync.bulk.Outbox("payouts", environment="sandbox")


@EITHER
@pytest.mark.parametrize("kind", ["session", "connection"])
async def test_what_is_committed_is_paid_once_and_what_is_rolled_back_is_never_sent(
    app: App, service: Sandbox, payouts: Any, kind: str
) -> None:
    async with app.transaction(kind) as session:
        await settled(session.execute(sa.text("CREATE TABLE orders (reference TEXT)")))
    for reference in ("order-1", "order-2"):
        async with app.transaction(kind) as session:
            await settled(session.execute(sa.text(f"INSERT INTO orders VALUES ('{reference}')")))
            added = await app.add(session, reference)
            assert added == OutboxRow(reference, Outcome.NOT_STARTED)
            assert await settled(app.outbox.find(session, reference)) == added
            if reference == "order-2":
                await settled(session.rollback())
    for _ in range(2):
        report = await payouts.run()
        assert (report.exit_code, report.rows, report.counts["created"]) == (0, 1, 1)
    (entry,) = service.books.payouts()
    assert (entry.reference, entry.amount, entry.currency) == ("order-1", Decimal("10.10"), "GHS")
    assert await app.find("order-1") == OutboxRow("order-1", Outcome.NOT_FINAL, entry.id, "pending")
    async with app.transaction(kind) as session:
        orders = (await settled(session.execute(sa.text("SELECT reference FROM orders")))).scalars().all()
    assert (orders, await app.find("order-2")) == (["order-1"], None)


ALL = {"amount": 0.5, "currency": "ghs", "method": "", "instrument": {}, "description": "x" * 501}
PAIRS = {str(number): number for number in range(10)}


@pytest.mark.parametrize(
    "faulty",
    [
        *({**ALL, "reference": "order-7~g1", "metadata": PAIRS}, {"reference": "order-7~g1"}),
        *({"reference": ""}, {"reference": "x" * 192}, {"reference": " order-7"}, {"amount": "1" * 19}),
        *({"metadata": PAIRS}, {"metadata": {"payments_sdk": "mine"}}),
    ],
)
def test_all_faults_are_named_at_once(faulty: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest, match=r"outbox\.add was not sent") as refused:
        OURS.statement(**{**REQUEST, "reference": "order-7", **faulty})
    assert {name.partition(".")[0] for name in refused.value.errors} == faulty.keys()


def test_an_outbox_has_a_name_and_an_environment() -> None:
    assert repr(OURS) == "Outbox('payouts', environment='sandbox')"
    with pytest.raises(BulkError, match="environment must be 'live' or 'sandbox'"):
        Outbox("payouts", environment="test")  # type: ignore[arg-type]
    with pytest.raises(BulkError, match="batch_id must be text"):
        Outbox("", environment="live")


@EITHER
async def test_a_reference_stands_for_one_content(app: App, service: Sandbox, payouts: Any) -> None:
    same: dict[str, Any] = {"description": "one", "amount": "1234567890123456.7"}
    same |= {"metadata": {"b": 1, "a": "2"}}
    await app.commit("order-1", **same)
    await app.commit("order-1", **{**same, "amount": "1234567890123456.70", "metadata": {"a": "2", "b": 1}})
    others: list[tuple[dict[str, Any], str]] = [
        ({"amount": "1234567890123456.71"}, "amount"),
        ({"currency": "XCD", "method": "mtn_bj"}, "currency, method"),
        ({"description": None}, "description"),
        ({"metadata": {"a": "3"}}, "metadata"),
        ({"outbox": app.outbox_of("live")}, "environment"),
    ]
    for change, fields in others:
        with pytest.raises(OutboxConflict, match=f"differs in {fields}; nothing was added") as caught:
            await app.commit("order-1", **{**same, **change})
        assert (caught.value.reference, ", ".join(caught.value.fields)) == ("order-1", fields)
        assert "order-1" not in str(caught.value)
    assert (await payouts.run()).rows == 1
    await app.commit("order-1", **same)  # paid or not
    assert (await payouts.run()).rows == 1
    assert books(service) == ["order-1"]


async def test_a_reference_is_one_however_its_letters_are_composed(
    app: App, service: Sandbox, payouts: Any
) -> None:
    composed, decomposed = (normalize(form, "café-1") for form in ("NFC", "NFD"))
    await app.commit(decomposed)
    await app.commit(composed)
    async with app.transaction("session") as session:
        assert (await settled(app.outbox.find(session, decomposed))).reference == composed
    assert (await payouts.run()).rows == 1
    assert books(service) == [composed]


@EITHER
async def test_no_file_shares_an_outbox_s_name(
    app: App, desk: Desk, client: Any, place: Path | str, service: Sandbox
) -> None:
    async with desk.open(place, client, batch_id="june") as june:
        await june.load([item(1), item(2, reference="order-2")])
        for reference in ("order-1", "order-2"):
            with pytest.raises(BulkError, match="june is a batch of a file: give the outbox another name"):
                await app.commit(reference, outbox=app.outbox_of("sandbox", "june"))
        with pytest.raises(BulkError, match="follow is for an outbox"):
            await june.run(follow=True)
        assert (await june.run()).rows == 2
    await app.commit("order-1")
    async with desk.open(place, client, **OUTBOX) as payouts:
        for _ in range(2):  # before its first run, and after
            with pytest.raises(BulkError, match="is an outbox, to which rows are added"):
                await payouts.load(items(2), pay_again=True)
            assert (await payouts.run()).rows == 1
    assert len(service.books.payouts()) == 3


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
            added = BLOCKING.statement(**REQUEST, reference=reference).compile(dialect=dialect)
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
            BLOCKING.add(session, **REQUEST, reference="order-1")
        inside = f"{place}?options={quote('-c search_path=pay')}"
        async with desk.open(inside, client, **OUTBOX) as payouts:
            assert (await payouts.run()).counts["created"] == 1
        with Session(engine) as session:
            row = BLOCKING.find(session, "order-1")
        assert row is not None
        assert row.payout_id == service.books.payouts()[0].id
    with engine_at(place) as engine:
        assert sa.inspect(engine).get_table_names() == []
