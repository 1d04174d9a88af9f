"""Imports a batch into a database: one transaction takes its name, makes its tables and fills them."""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterable
from typing import Final

import attrs

from ..._protocol.clocks import Timestamps
from ..._protocol.records import Binding, NewRow
from ..._protocol.stop_rules import StopRules
from ...ledger_errors import BatchExists, InputPaidElsewhere
from .. import importing
from ..importing import Loading, provisional
from ..statements import Statement
from ..transactions import Transaction
from .batches import rules_text
from .dialect import KEYED
from .schema import RIGHTS, batch_tables, table_of
from .session import NOW

_LARGEST: Final = 10_000
_CHUNKS: Final = 200
# the server draws the key of the batch's hashes: then no statement has it that could be logged
_TAKE: Final = """
    INSERT INTO payments.batches (batch, batch_id, environment, base_url, key_fingerprint, input_hash,
        input_stat, client_version, schema, keys, rules, state, created_at, rows, totals, extra, chunk_size,
        chunks, described_in, hash_key)
    VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %b::text[], %s, 'imported', 0, 0, '{}', '{}', 0, 0, 1,
        uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()))
    ON CONFLICT DO NOTHING RETURNING 1
"""
# to those who work on chunks, and so on rows: a role that only reads chunks sees no row
_GRANTEES: Final[Statement] = (
    "SELECT DISTINCT quote_ident(r.rolname) FROM pg_class c, aclexplode(c.relacl) a "
    "JOIN pg_roles r ON r.oid = a.grantee WHERE c.oid = 'payments.chunks'::regclass "
    "AND a.privilege_type = 'UPDATE' AND r.rolname <> current_user",
    (),
)


def chunk_size(last: int) -> int:
    """The rows of a chunk of a batch whose last row has this number: 500 to 10,000, in steps of 500."""
    step = importing.BLOCK
    wanted = max(step, min(_LARGEST, last // _CHUNKS))
    return -(-wanted // step) * step


@attrs.define(kw_only=True)
class SharedLoading(Loading):
    """The import of one batch. Its number in the database is a random one."""

    paid_elsewhere: frozenset[str]
    """Other batches that may have the same input: the operator pays it again on purpose."""

    async def load(self, transaction: Transaction, rows: AsyncIterable[NewRow], at: Timestamps) -> None:
        """Make the tables of the batch and fill them. Raises BatchExists and InputPaidElsewhere too."""
        wall = await self._take(transaction)
        transaction.write(*((statement, ()) for statement in batch_tables(self.batch)))
        await super().load(transaction, rows, attrs.evolve(at, wall=wall))
        (grantees,) = await transaction.read(_GRANTEES)
        for (role,) in grantees:
            for kind, rights in RIGHTS.items():
                transaction.write((f"GRANT {rights} ON {table_of(kind, self.batch)} TO {role}", ()))

    async def _take(self, transaction: Transaction) -> float:
        """Take the batch's name, and return the database's time. Waits for another planner of the batch."""
        transaction.lock(input_lock(self.binding))
        (same,) = await transaction.read(same_input(self.binding))
        for batch_id, is_forgotten in same:
            if batch_id not in self.paid_elsewhere:
                raise InputPaidElsewhere(self.path, batch_id=batch_id, is_forgotten=is_forgotten)
        values = (
            *provisional(self.batch, self.binding),
            [self.binding.key_fingerprint],
            rules_text(StopRules()),
        )
        taken, ((wall,),) = await transaction.read((_TAKE, values), NOW)
        if not taken:
            raise BatchExists(self.path)
        return float(wall)

    def _chunk_size(self) -> int:
        return chunk_size(self.last)

    def _chunks(self) -> Iterable[int]:
        return ()

    def _granted_to(self, last: int) -> int:
        return 0


def input_lock(binding: Binding) -> str:
    """The name of a lock that lets one process at a time import an input."""
    return f"payments {binding.input_hash}"


def same_input(binding: Binding) -> Statement:
    """Make a statement that finds other batches with the same input, and whether each was forgotten.

    An environment of `""` stands for any.
    """
    return (
        "SELECT b.batch_id, b.forgotten IS NOT NULL FROM payments.batches b WHERE b.input_hash = "
        "CASE WHEN b.forgotten IS NULL THEN %s "
        f"ELSE encode({KEYED.format('convert_to(%s, $$UTF8$$)')}, 'hex') END AND b.batch_id <> %s "
        "AND (b.environment = %s OR %s = '') ORDER BY b.created_at",
        (*(binding.input_hash,) * 2, binding.batch_id, *(binding.environment,) * 2),
    )
