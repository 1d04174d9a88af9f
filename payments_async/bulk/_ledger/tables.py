"""The ledger's tables, in one `MetaData` for `create_all` or Alembic, and the database's clock.

    batches   a line each: account, input, what an operator decided, who reads the list, the certificate
    rows      what is asked, the state, who has the row until when, its payout, the last word about it
    payouts   those that the list shows of rows that have several, of failed ones, and beside the rows
    words     each word of the service about a payout that differs from the one before

Amounts are whole numbers with a scale: every database adds whole numbers exactly.
"""

from __future__ import annotations

from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.ext.compiler import compiles

from .._protocol.outcomes import RowState, Turn

TAKEN_FOR: Final = 60.0
"""Seconds for which a process has the rows that it took, or the reading of the list."""
FORM: Final = 2
"""The form of these tables. A ledger of another form is refused."""

metadata: Final = sa.MetaData()
_ID: Final = sa.BigInteger().with_variant(sa.Integer, "sqlite")  # as SQLite numbers rows by INTEGER alone
_NAME: Final = sa.String(191)
_WORD: Final = sa.String(200)
_TEXT: Final = sa.String(1000)
_TIME: Final = sa.Double

batches: Final = sa.Table(
    "payments_batches",
    metadata,
    sa.Column("batch_id", _NAME, primary_key=True),
    sa.Column("form", sa.SmallInteger, nullable=False, server_default=sa.text(str(FORM))),
    sa.Column("environment", sa.String(16), nullable=False),
    sa.Column("base_url", _TEXT, nullable=False, server_default=sa.text("''")),
    sa.Column("account", sa.String(64)),
    sa.Column("is_outbox", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("input_hash", sa.String(64), nullable=False, server_default=sa.text("''")),
    sa.Column("input_stat", _TEXT, nullable=False, server_default=sa.text("'{}'")),
    sa.Column("imported_rows", _ID, nullable=False, server_default=sa.text("0")),
    sa.Column("imported_sums", sa.Text, nullable=False, server_default=sa.text("'{}'")),
    sa.Column("doubts", _ID, nullable=False, server_default=sa.text("0")),
    sa.Column("created_at", _TIME, nullable=False),
    sa.Column("paused", _TEXT),
    sa.Column("last_row", _ID),
    sa.Column("limit_reason", _TEXT),
    sa.Column("max_failure_rate", sa.Double),
    sa.Column("confirmed", sa.Text),
    sa.Column("guard", sa.String(64), nullable=False, server_default=sa.text("''")),
    sa.Column("oldest", _TIME),
    sa.Column("reader", sa.String(100)),
    sa.Column("reader_until", _TIME, nullable=False, server_default=sa.text("0")),
    sa.Column("reading", sa.Integer, nullable=False, server_default=sa.text("0")),
    sa.Column("reading_began", _TIME, nullable=False, server_default=sa.text("0")),
    sa.Column("reading_since", _TIME),
    sa.Column("reading_cursor", sa.Text),
    sa.Column("reading_audit", sa.Text),
    sa.Column("read_at", _TIME, nullable=False, server_default=sa.text("0")),
    sa.Column("read_all", _TIME, nullable=False, server_default=sa.text("0")),
    sa.Column("certificate", sa.Text),
    sa.Column("forgotten_at", _TIME),
    sa.Column("forgotten_before", _TIME, nullable=False, server_default=sa.text("0")),
)

rows: Final = sa.Table(
    "payments_rows",
    metadata,
    sa.Column("id", _ID, primary_key=True),
    sa.Column("batch_id", _NAME, nullable=False),
    sa.Column("environment", sa.String(16), nullable=False),
    sa.Column("number", _ID),
    sa.Column("line", _ID),
    sa.Column("row_key", _NAME, nullable=False),
    sa.Column("stem", _NAME, nullable=False),
    sa.Column("units", sa.BigInteger, nullable=False),
    sa.Column("scale", sa.SmallInteger, nullable=False),
    sa.Column("currency", sa.String(3), nullable=False),
    sa.Column("method", _NAME, nullable=False),
    sa.Column("body", sa.LargeBinary, nullable=False),
    sa.Column("state", sa.String(12), nullable=False, server_default=RowState.NEW.value),
    sa.Column("turn", sa.SmallInteger, nullable=False, server_default=sa.text(str(int(Turn.POST)))),
    sa.Column("generation", sa.Integer, nullable=False, server_default=sa.text("0")),
    sa.Column("revision", sa.Integer, nullable=False, server_default=sa.text("0")),
    sa.Column("epoch", sa.Integer, nullable=False, server_default=sa.text("0")),
    sa.Column("taken_by", sa.String(100)),
    sa.Column("due", _TIME, nullable=False, server_default=sa.text("0")),
    sa.Column("doubted", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("takes", sa.Integer, nullable=False, server_default=sa.text("0")),
    sa.Column("unsent", sa.Integer, nullable=False, server_default=sa.text("0")),
    sa.Column("first_sent", _TIME),
    sa.Column("last_sent", _TIME),
    sa.Column("key_since", _TIME),
    sa.Column("sent_under", sa.String(64)),
    sa.Column("reset_at", _TIME),
    sa.Column("cleared_at", _TIME),
    sa.Column("payout_id", _WORD),
    sa.Column("service_status", _WORD),
    sa.Column("payout_end", sa.String(8), nullable=False, server_default="open"),
    sa.Column("had_arrived", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("earlier_arrived", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("payout_money", _WORD),
    sa.Column("is_found", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("failure_code", _WORD),
    sa.Column("failure_message", _TEXT),
    sa.Column("decided_at", _TIME),
    sa.Column("service_at", _TIME),
    sa.Column("seen", sa.Integer, nullable=False, server_default=sa.text("0")),
    sa.UniqueConstraint("batch_id", "stem", name="payments_rows_stem"),
    sa.Index("payments_rows_key", "batch_id", "row_key"),
)
# room for a row's next form beside it, so that no index changes; SQLAlchemy 2.0 has no argument for it
_ROOM: Final = sa.DDL("ALTER TABLE %(fullname)s SET (fillfactor = 70)")  # type: ignore[no-untyped-call]
sa.event.listen(rows, "after_create", _ROOM.execute_if(dialect="postgresql"))

payouts: Final = sa.Table(
    "payments_payouts",
    metadata,
    sa.Column("id", _ID, primary_key=True),
    sa.Column("batch_id", _NAME, nullable=False),
    sa.Column("row", _ID, index=True),
    sa.Column("reading", sa.Integer, nullable=False),
    sa.Column("form", sa.String(64), nullable=False),
    sa.Column("shown", sa.Text, nullable=False),
    sa.Column("is_judged", sa.Boolean, nullable=False),
    sa.Column("beside", sa.String(20)),
    sa.Column("units", sa.BigInteger, nullable=False, server_default=sa.text("0")),
    sa.Column("scale", sa.SmallInteger, nullable=False, server_default=sa.text("0")),
    sa.Column("currency", sa.String(3), nullable=False, server_default=sa.text("''")),
    sa.UniqueConstraint("batch_id", "form", name="payments_payouts_form"),
)
"""`shown`: the payout as the list has it; `form`: the hash of that. `is_judged`: judged by its page."""

words: Final = sa.Table(
    "payments_words",
    metadata,
    sa.Column("id", _ID, primary_key=True),
    sa.Column("row", _ID, nullable=False, index=True),
    sa.Column("payout_id", _WORD, nullable=False),
    sa.Column("status", _WORD),
    sa.Column("contradicts", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("service_at", _TIME),
    sa.Column("at", _TIME, nullable=False),
)


def has_turn(turn: Turn) -> sa.ColumnElement[bool]:
    """Whether a row has this turn: literally, as no partial index is used for a parameter."""
    return rows.c.turn == sa.literal_column(str(int(turn)))


for _turn in (Turn.POST, Turn.LOOK):
    sa.Index(
        f"payments_rows_to_{_turn.name.lower()}",
        *(rows.c.batch_id, rows.c.due, rows.c.id),  # due before id: what is decided is not walked over
        postgresql_where=has_turn(_turn),
        sqlite_where=has_turn(_turn),
    )


TO_POST: Final = {"turn": int(Turn.POST), "due": 0.0, "takes": 0, "unsent": 0, "key_since": None}
"""Of a row that is to be posted under a key that it never had."""
TO_POST_ANEW: Final = {
    **TO_POST,
    "state": RowState.NEW.value,
    "failure_code": None,
    "failure_message": None,
}
"""Of a row that is made new again."""


class now(sa.sql.expression.FunctionElement[float]):  # noqa: N801 - reads as SQL's function
    """Seconds since 1970 on the database's clock, at the moment of the statement."""

    type = sa.Double()
    inherit_cache = True


@compiles(now)
def _now(element: Any, compiler: Any, **_: Any) -> str:
    return "extract(epoch from statement_timestamp())"  # stable: an index finds what is due


@compiles(now, "sqlite")
def _now_in_sqlite(element: Any, compiler: Any, **_: Any) -> str:
    return "((julianday('now') - 2440587.5) * 86400.0)"


def decided_by(moment: float) -> sa.ColumnElement[bool]:
    """Whether a row's latest word is so old: also one from the future, as the clock was put back since."""
    at = sa.func.coalesce(rows.c.decided_at, 0.0)
    return sa.or_(at <= moment, at > now() + TAKEN_FOR)
