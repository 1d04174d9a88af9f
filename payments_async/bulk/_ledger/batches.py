"""The facts of a whole batch, such as account, input and sums: in its table row, and in its hash chain."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal

import attrs

from .._protocol.identifiers import keyed_hash
from .._protocol.outcomes import ExtraPayout, as_text, read_totals, totals_text
from .._protocol.records import Binding, Header
from .chunks import Batch
from .statements import Rows, Statement, Statements
from .stored_rows import blob, readable

FORM = 5
"""The number of what a batch's records mean. A batch keeps that of its import; only that one works on it."""


@attrs.frozen
class BatchFacts:
    """A batch, as stored."""

    batch: Batch
    header: Header
    chunks: int
    """How many chunks it has, without the one that stands for itself."""
    described_in: int
    """The entry of its own chain that carries the header's facts."""

    @property
    def text(self) -> str:
        """What that entry says, as JSON text."""
        header, batch = self.header, self.batch
        sums = {"totals": amounts_text(header), "extra": learned_text(header)}
        facts = {**attrs.asdict(header), **sums, "chunk_size": batch.chunk_size, "chunks": self.chunks}
        del facts["guard"]  # it is in `extra`
        for name in ("input_hash", "input_stat"):  # of an input of one row they tell its account
            facts["binding"][name] = keyed_hash(batch.hash_key, facts["binding"][name])
        return json.dumps(facts, sort_keys=True)


def batch_of(
    batch: int,
    batch_id: str,
    environment: str,
    base_url: str,
    key_fingerprint: str,
    input_hash: str,
    input_stat: str,
    created_at: float,
    client_version: str,
    schema: int,
    rows: int,
    totals: str,
    extra: str,
    chunk_size: int,
    chunks: int,
    described_in: int,
    hash_key: bytes,
) -> BatchFacts:
    """Make a batch of a table row's values. Those that none has raise one of the errors of `readable`."""
    if chunk_size < 1:
        raise ValueError("chunks have no rows")
    binding = Binding(batch_id, environment, base_url, key_fingerprint, input_hash, input_stat)
    amounts = {currency: Decimal(text) for currency, text in json.loads(totals).items()}
    learned = json.loads(extra)
    guard = str(learned.pop("guard", ""))
    extras = read_totals(json.dumps(learned), ExtraPayout)
    header = Header(binding, float(created_at), client_version, schema, int(rows), amounts, extras, guard)
    found = Batch(batch, batch_id, chunk_size, blob(hash_key))
    return BatchFacts(found, header, int(chunks), int(described_in))


def facts_of(found: Rows) -> BatchFacts:
    """Make a batch of what a statement has read. Raises UnreadableRecord."""
    with readable("a batch"):
        (facts,) = (batch_of(*values) for values in found)
        return facts


def amounts_text(header: Header) -> str:
    """Format a header's sums as JSON text."""
    return json.dumps({currency: as_text(amount) for currency, amount in sorted(header.totals.items())})


def learned_text(header: Header) -> str:
    """Format as JSON text what a header's column `extra` keeps: extra payouts, and the guard."""
    text = totals_text(header.extra)
    return json.dumps({**json.loads(text), "guard": header.guard}) if header.guard else text


def rebinding(sql: Statements, facts: BatchFacts) -> Iterator[Statement]:
    """Make the statements that store another key, input or sums."""
    header, batch = facts.header, facts.batch.batch
    binding = header.binding
    yield (
        sql.rebind,
        (
            *(binding.key_fingerprint, binding.input_hash, binding.input_stat, amounts_text(header)),
            *(learned_text(header), facts.described_in, batch),
        ),
    )
    yield from ((statement, (batch,)) for statement in sql.keep_key)
