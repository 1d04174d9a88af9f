"""The values that a ledger stores and returns, plain and frozen, and sets and groups of them.

None shows account data.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Iterable, Mapping
from decimal import Decimal
from typing import Final, Literal, TypeVar

import attrs

from ...models.statuses import PayoutEnd
from .clocks import Timestamps
from .outcomes import ExtraTotals, Outcome, RowTotals, Sums, count_rows, outcome_of, read_totals
from .row_state import RowKnowledge, RowState

T = TypeVar("T")
What = Literal["changed", "removed", "added"]
HIDDEN: Final = "***"
"""The mask for a row key that could be a person's name or number."""
_CORRECTABLE: Final = frozenset({RowState.NEW, RowState.REJECTED})


@attrs.frozen
class Binding:
    """The batch, account and input that a ledger is bound to."""

    batch_id: str
    environment: str
    """`live` or `sandbox`."""
    base_url: str
    key_fingerprint: str
    """A fingerprint that distinguishes API keys without revealing them."""
    input_hash: str
    """The hash of the input's content (`sources`)."""
    input_stat: str
    """Facts that identify an unchanged file without reading it: JSON text of size, time, head and tail."""


@attrs.frozen
class Header:
    """A ledger's facts about its batch."""

    binding: Binding
    created_at: float
    """Seconds since 1970, as all times here."""
    client_version: str
    """The version of this package that imported the rows."""
    schema: int
    """The ledger's schema version."""
    rows: int
    """How many rows were imported."""
    totals: Mapping[str, Decimal]
    """{currency: sum of the rows' amounts, major units}, as imported, or after accepted edits."""
    extra: ExtraTotals = attrs.field(factory=dict)
    """The extra payouts that the latest whole reading of the list has shown (`extra_payouts`)."""
    guard: str = ""
    """The digest of the guards that the batch is run under; "" for none."""


@attrs.frozen
class NewRow:
    """One row to import, or the replacement of a row: everything that is sent, made once."""

    number: int
    """The row's number among the input's rows of data, from 1."""
    line: int | None
    """The file's line where the row begins, from 1."""
    row_key: str
    reference: str
    """The payout's reference, unique in the project for ever: prevents paying twice (POST /payouts)."""
    amount: Decimal
    """Major units."""
    currency: str
    method: str
    body: bytes = attrs.field(repr=False)
    """The exact bytes to send."""
    body_hash: str
    """SHA-256 of `body`, hexadecimal (`identifiers.body_hash`)."""
    idempotency_key: str
    metadata: str | None = attrs.field(default=None, repr=False)
    """The operator's own pairs, JSON text, for reports."""

    @property
    def amount_text(self) -> str:
        """The amount as plain digits, never with an exponent: `10.10`, `100`."""
        return format(self.amount, "f")


@attrs.frozen
class LedgerRow(NewRow):
    """One row of the ledger. Columns, values and digest follow from its fields (`ledger/stored_rows.py`)."""

    known: RowKnowledge = attrs.field(factory=RowKnowledge)
    """The row's state and counters (`row_state`)."""
    service_status: str | None = None
    """The payout's status as the service showed it last."""
    payout_end: PayoutEnd = PayoutEnd.OPEN
    """How the payout has ended, as the service said last."""
    had_arrived: bool = False
    """True if the service ever said that the payout had arrived."""
    earlier_arrived: bool = False
    """True if the service ever said that another payout of the row had arrived."""
    unsent_generations: int = 0
    """The earlier generations that were never sent, a bit for each: bit 1 stands for generation 1."""
    payout_money: str | None = None
    """What the service says the payout is of, where the row asks for another sum: `XOF 10.3`."""
    failure_code: str | None = None
    failure_message: str | None = None
    """The reason for the refusal or failure, or how the payout contradicts itself, without account data."""
    first_intent: int | None = None
    """The entry with the first intent of this generation: nothing was sent before."""
    key_intent: int | None = None
    """The entry with the first intent under the present idempotency key."""
    last_intent: int | None = None
    """The entry with the latest intent."""
    changed_in: int = 0
    """The entry of the last change."""

    @property
    def state(self) -> RowState:
        """The row's state."""
        return self.known.state

    @property
    def outcome(self) -> Outcome:
        """What became of the row."""
        had_arrived = self.had_arrived or self.earlier_arrived
        return outcome_of(self.known.state, self.payout_end, had_arrived=had_arrived)

    @property
    def is_final(self) -> bool:
        """True if its payout has ended."""
        return self.payout_end.is_final

    @property
    def is_awaited(self) -> bool:
        """True if its payout may still end: not final, without contradicting itself."""
        return self.state is RowState.CREATED and self.payout_end is PayoutEnd.OPEN


@attrs.frozen
class RowFigures:
    """Counts and sums of some rows."""

    totals: RowTotals = attrs.field(factory=dict)
    generation: int = 0
    """The highest generation of the rows."""

    def after(self, changes: Iterable[tuple[LedgerRow, LedgerRow]]) -> RowFigures:
        """Compute the figures once the first row of each pair has become the second."""
        sums, generation = Sums(self.totals), self.generation
        for before, after in changes:
            sums.remove((before.outcome, before.currency), before.amount)
            sums.add((after.outcome, after.currency), after.amount)
            generation = max(generation, after.known.generation)
        return RowFigures({place: total for place, total in sums.totals.items() if total[0]}, generation)

    def count(self, *outcomes: Outcome) -> int:
        """Count the rows of any of these outcomes."""
        return count_rows(self.totals, *outcomes)

    def counts(self, *groups: Iterable[Outcome]) -> list[int]:
        """Count the rows of each group of outcomes."""
        return [count_rows(self.totals, *outcomes) for outcomes in groups]

    @classmethod
    def read(cls, totals: str, generation: int) -> RowFigures:
        """Parse what `totals_text` wrote. Raises ValueError, TypeError, ArithmeticError or AttributeError."""
        return cls(read_totals(totals, Outcome), generation)


def row_figures_of(rows: Iterable[LedgerRow]) -> RowFigures:
    """Count rows."""
    sums, generation = Sums[tuple[Outcome, str]](), 0
    for row in rows:
        sums.add((row.outcome, row.currency), row.amount)
        generation = max(generation, row.known.generation)
    return RowFigures(sums.totals, generation)


def added_up(figures: Iterable[RowFigures]) -> RowFigures:
    """Add up the figures of several chunks."""
    sums, generation = Sums[tuple[Outcome, str]](), 0
    for each in figures:
        generation = max(generation, each.generation)
        for place, (rows, amount) in each.totals.items():
            sums.add(place, amount, rows)
    return RowFigures(sums.totals, generation)


@attrs.frozen
class RowOutcome:
    """New facts about a row. A fact that is None replaces nothing."""

    number: int
    known: RowKnowledge
    """The row's state and counters with the new facts (`row_state`)."""
    service_status: str | None = None
    payout_end: PayoutEnd = PayoutEnd.OPEN
    """How the payout has ended: one that is open replaces an end only if it is the `latest`."""
    failure_code: str | None = None
    failure_message: str | None = None
    payout_money: str | None = None
    body_hash: str | None = attrs.field(default=None, repr=False)
    """The body that it is about: it is no outcome of a row that has another; None if that is known to fit."""
    latest: bool = False
    """True if the list was just read: what the service says last counts, whatever it said before."""


@attrs.frozen
class Resend:
    """An intent to post an unfinished row again."""

    number: int
    next_key: str | None = None
    """The idempotency key of the next epoch; None to use the present one again."""
    absent: bool = False
    """True if it was proven that no request so far made a payout."""


@attrs.frozen
class Claim:
    """Rows whose intent is on the disk: they may be sent."""

    rows: tuple[LedgerRow, ...]
    at: Timestamps
    """The time when the intent was recorded."""


@attrs.frozen
class IntentTimes:
    """The times when a row's intents were recorded."""

    first: Timestamps
    """The first intent of this generation: nothing was sent before."""
    key: Timestamps
    """The first intent under the present idempotency key."""
    last: Timestamps
    """The latest intent."""


@attrs.frozen
class StatusChange:
    """A status of a row's payout that differs from what the service had said of the row before."""

    status: str | None
    """The status; None where the service shows timestamps alone."""
    payout_id: str
    """The payout that it is about: the one that stood for the row then."""
    at: float
    """When the ledger recorded it, seconds since 1970."""
    service_at: float | None
    """The same by the service's clock; None if that was not known."""
    contradicts: bool = False
    """True if the payout's timestamps contradict it."""


@attrs.frozen
class Awaited:
    """Created rows whose payouts are not final."""

    rows: int
    since: float | None
    """The time when the first was begun, by the service's clock; None if unknown for any of them."""


@attrs.frozen
class Duplicate:
    """Two rows of the input that share what must be unique."""

    column: str
    """`row_key` or `reference`."""
    value: str = attrs.field(repr=False)
    """The shared value. It may be a phone number: no message shows it."""
    rows: tuple[int, int]
    """The numbers of the first two rows that share it."""
    lines: tuple[int | None, int | None]
    """The lines where these rows begin."""

    def __str__(self) -> str:
        where, places = ("rows", self.rows) if None in self.lines else ("lines", self.lines)
        return f"{where} {places[0]} and {places[1]} have the same {self.column}"


@attrs.frozen
class InputDifference:
    """One row that differs between the input and the ledger."""

    number: int
    """The row's number in the input, from 1; for a removed row, in the earlier input."""
    line: int | None
    """The line of that file where the row begins, from 1."""
    row_key: str
    """The row's key; `***` where it could be a person's name or number."""
    what: What
    fields: tuple[str, ...] = ()
    """The names of a changed row's differing fields."""
    state: RowState | None = None
    """The state of the ledger's row; None when the ledger has none."""

    @property
    def is_acceptable(self) -> bool:
        """True if `accept_edits` can apply it: nothing was sent, or what was sent was refused."""
        if self.what == "removed":
            return self.state is RowState.NEW
        return self.what == "changed" and self.state in _CORRECTABLE and "reference" not in self.fields

    def __str__(self) -> str:
        """`row 3 (line 4, key a-3): changed amount, REJECTED`; a key that is hidden is left out."""
        line = [] if self.line is None else [f"line {self.line}"]
        key = [] if self.row_key == HIDDEN else [f"key {self.row_key}"]
        place = f" ({', '.join([*line, *key])})" if line or key else ""
        fields = f" {' '.join(self.fields)}" if self.fields else ""
        state = "" if self.state is None else f", {self.state}"
        return f"row {self.number}{place}: {self.what}{fields}{state}"


@attrs.frozen
class CheckReport:
    """The result of a full check of a ledger."""

    rows: int
    entries: int
    head: str
    """SHA-256 over a line for each chunk, hexadecimal; it covers all that was ever recorded of rows."""
    findings: tuple[str, ...]
    """What is wrong; empty when all is well."""
    unreadable: tuple[str, ...] = ()
    """Figures of runs that cannot be read. Nothing depends on them, so the ledger is sound without them."""

    def with_finding(self, finding: str | None) -> CheckReport:
        """Add one finding, unless it is None or there already."""
        if finding is None or finding in self.findings:
            return self
        return attrs.evolve(self, findings=(*self.findings, finding))


class RowSet:
    """A set of row numbers that takes one bit for each."""

    def __init__(self) -> None:
        self._bits = bytearray()

    def add(self, number: int) -> bool:
        """Add a row. Returns False if it was there already."""
        place, bit = number >> 3, 1 << (number & 7)
        self._bits.extend(bytes(max(0, place + 1 - len(self._bits))))
        fresh = not self._bits[place] & bit
        self._bits[place] |= bit
        return fresh

    def __contains__(self, number: int) -> bool:
        place = number >> 3
        return place < len(self._bits) and bool(self._bits[place] >> (number & 7) & 1)


async def grouped(items: AsyncIterable[T], size: int) -> AsyncGenerator[list[T], None]:
    """Group items into lists of this size; the last may be shorter."""
    group: list[T] = []
    async for item in items:
        group.append(item)
        if len(group) == size:
            yield group
            group = []
    if group:
        yield group
