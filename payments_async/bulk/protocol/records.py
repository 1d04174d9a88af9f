"""What goes into a ledger and comes out of it: plain frozen values. None shows account data."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Final, Literal

import attrs

from .clocks import Timestamps
from .row_state import RowKnowledge, RowState

What = Literal["changed", "removed", "added"]
HIDDEN: Final = "***"
"""What is shown of a row key that could be a person's name or number."""
_CORRECTABLE: Final = frozenset({RowState.NEW, RowState.REJECTED})


@attrs.frozen
class Binding:
    """What a ledger is begun for, and may be used for ever after."""

    batch_id: str
    environment: str
    """`live` or `sandbox`."""
    base_url: str
    key_fingerprint: str
    """Tells keys apart and gives none away."""
    input_hash: str
    """What the rows of the input say (`sources`)."""
    input_stat: str
    """By which an unchanged file is known without reading it: JSON text of size, time, head and tail."""


@attrs.frozen
class Header:
    """What a ledger says of itself."""

    binding: Binding
    created_at: float
    """Seconds since 1970, as all times here."""
    client_version: str
    """The version of this package that imported the rows."""
    schema: int
    """The number of the ledger's form."""
    rows: int
    """How many rows were imported."""
    totals: Mapping[str, Decimal]
    """{currency: sum of the rows' amounts, major units}: as imported, or as accepted edits left them."""


@attrs.frozen
class NewRow:
    """One row to import, or what replaces a row: everything that is sent, made once."""

    number: int
    """Which row of the input's data, from 1."""
    line: int | None
    """The file's line where it begins, from 1."""
    row_key: str
    reference: str
    """What makes it impossible to pay twice: unique in the project for ever (Endpoints, POST /payouts)."""
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


@attrs.frozen
class LedgerRow:
    """One row as the ledger has it."""

    number: int
    line: int | None
    row_key: str
    reference: str
    amount: Decimal
    """Major units."""
    currency: str
    method: str
    body: bytes = attrs.field(repr=False)
    body_hash: str
    idempotency_key: str
    metadata: str | None = attrs.field(repr=False)
    known: RowKnowledge
    """What is known of it (`row_state`)."""
    service_status: str | None = None
    """The payout's status as the service showed it last."""
    final: bool = False
    """True if that status is final."""
    failure_code: str | None = None
    failure_message: str | None = None
    """Why it was refused or failed, without account data."""
    first_intent: int | None = None
    """The entry that recorded the first intent to send it in this generation: nothing was sent before."""
    key_intent: int | None = None
    """The entry with the first intent under its present idempotency key."""
    last_intent: int | None = None
    """The entry with the latest intent."""
    changed_in: int = 0
    """The entry that changed it last."""

    @property
    def state(self) -> RowState:
        """Where it stands."""
        return self.known.state


@attrs.frozen
class RowOutcome:
    """What was learned of a row. Facts that are None take nothing away from what is known."""

    number: int
    known: RowKnowledge
    """The row's, moved on by what was learned (`row_state`)."""
    service_status: str | None = None
    final: bool = False
    """True if `service_status` is final: another that is not never replaces it."""
    failure_code: str | None = None
    failure_message: str | None = None


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
    """When the intent was recorded."""


StateTotals = Mapping[tuple[RowState, str], tuple[int, Decimal]]
"""{(state, currency): (its rows, the sum of their amounts in major units)}."""


@attrs.frozen
class Awaited:
    """Created rows whose payouts are not final."""

    rows: int
    since: float | None
    """When the first of them was begun, by the service's clock; None when that is not known of all."""


@attrs.frozen
class Ends:
    """How the payouts of created rows have ended."""

    finals: Mapping[str, int]
    """{final status, as the service calls it: rows}."""
    failed: int
    """Those among them that did not arrive."""


@attrs.frozen
class Duplicate:
    """Two rows of the input that share what must be unique."""

    column: str
    """`row_key` or `reference`."""
    value: str = attrs.field(repr=False)
    """What they share. It may be a phone number: no message shows it."""
    rows: tuple[int, int]
    """The numbers of the first two rows that share it."""
    lines: tuple[int | None, int | None]
    """The lines where they begin."""

    def __str__(self) -> str:
        where, places = ("rows", self.rows) if None in self.lines else ("lines", self.lines)
        return f"{where} {places[0]} and {places[1]} have the same {self.column}"


@attrs.frozen
class InputDifference:
    """One row of the input that is not as the ledger has it."""

    number: int
    """Which row of data it is, from 1: of the input, or, for a row that is gone, of the input as it was."""
    line: int | None
    """The line of that file where it begins, from 1."""
    row_key: str
    """The row's key; `***` where it could be a person's name or number."""
    what: What
    fields: tuple[str, ...] = ()
    """Of a changed row, which fields differ: their names alone."""
    state: RowState | None = None
    """Where the ledger's row stands; None when it has none."""

    @property
    def is_acceptable(self) -> bool:
        """True if `accept_edits` can take it over: nothing was sent, or what was sent was refused."""
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
    """What a full check of a ledger read, and what it found wrong."""

    rows: int
    entries: int
    head: str
    """The hash of the last entry, hexadecimal: all that was ever recorded stands behind it."""
    findings: tuple[str, ...]
    """Empty when all is well."""

    def with_finding(self, finding: str | None) -> CheckReport:
        """The same with one finding more, unless it is None or there already."""
        if finding is None or finding in self.findings:
            return self
        return attrs.evolve(self, findings=(*self.findings, finding))
