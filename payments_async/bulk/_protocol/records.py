"""The values that a ledger stores and returns, plain and frozen, and sets and groups of them.

None shows account data.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Mapping
from decimal import Decimal
from typing import Any, Final, Literal, TypeVar

import attrs

from ...models.statuses import PayoutEnd
from .outcomes import Outcome, RowState, Turn, outcome_of

T = TypeVar("T")
What = Literal["changed", "removed", "added"]
HIDDEN: Final = "***"
"""The mask for a row key that could be a person's name or number."""


@attrs.frozen
class Binding:
    """The batch, account and input that a ledger is bound to."""

    batch_id: str
    environment: str
    """`live` or `sandbox`."""
    base_url: str
    key_fingerprint: str
    """A fingerprint that distinguishes API keys without revealing them; "" before the first run."""
    input_hash: str
    """The hash of the input's content (`sources`); "" for an outbox."""
    input_stat: str
    """Facts that identify an unchanged file without reading it: JSON text of size, time, head and tail."""


@attrs.frozen
class Account:
    """The account that a batch may pay from."""

    environment: str  # `live` or `sandbox`
    base_url: str
    key: str  # a fingerprint of the API key, never the key


@attrs.frozen
class NewRow:
    """One row to import: everything that is sent, made once."""

    number: int  # the row's number among the input's rows of data, from 1
    line: int | None  # the file's line where the row begins, from 1
    row_key: str
    stem: str
    """The reference of the row's first payout. Later ones have `~g1`, `~g2` behind it."""
    amount: Decimal  # major units
    currency: str
    method: str
    body: bytes = attrs.field(repr=False)
    """The exact bytes to send for the first payout."""
    is_doubtful: bool = attrs.field(default=False, kw_only=True)
    """True if a value of it is allowed, and probably a slip; as it is read, and not in the ledger."""


@attrs.frozen
class LedgerRow(NewRow):
    id: int = 0
    environment: str = ""
    state: RowState = RowState.NEW
    turn: Turn = Turn.POST
    generation: int = 0
    """How many payouts of this row have finally failed, each replaced by the next."""
    revision: int = 0
    """How often the row was given a body again, after it was refused or before it was sent."""
    epoch: int = 0  # how many idempotency keys of this body are no longer used
    doubted: bool = False
    """True if something may have been sent of which nothing is proven."""
    takes: int = 0
    """How often a process took the row to send it: the number of its latest send."""
    unsent: int = 0  # how many of these sends are proven never to have left
    first_sent: float | None = None
    """When it was first taken, in whichever generation; seconds since 1970 by the database, as all times.

    None also where no send of it has ever left, by proof: such a row binds the batch to no account.
    """
    last_sent: float | None = None
    """The last moment at which the latest send can have left."""
    key_since: float | None = None  # when its idempotency key was first used
    sent_under: str | None = None  # fingerprint of the secret key of the latest send
    payout_id: str | None = None
    service_status: str | None = None
    """The payout's status as the service showed it last."""
    payout_end: PayoutEnd = PayoutEnd.OPEN
    had_arrived: bool = False
    """True if the service ever said that the payout had arrived."""
    earlier_arrived: bool = False
    """True if the service ever said that another payout of the row had arrived."""
    payout_money: str | None = None
    """What the service says the payout is of, where the row asks for another sum: `XOF 10.3`."""
    is_found: bool = False
    """True if its payout is known by the list, and not by the answer to this ledger's own request."""
    failure_code: str | None = None
    failure_message: str | None = None
    """The reason for the refusal or failure, or how the payout contradicts itself, without account data."""
    decided_at: float | None = None  # when its last state was recorded
    service_at: float | None = None  # the service's time of its payout's status
    seen: int = 0  # the reading of the list that has shown its payout last

    @property
    def reference(self) -> str:
        """The reference of its present payout."""
        return f"{self.stem}~g{self.generation}" if self.generation else self.stem

    @property
    def is_first_send(self) -> bool:
        """True if every earlier send of the row, under whichever key and content, never left."""
        is_as_loaded = not (self.generation or self.revision or self.epoch)  # these begin the count anew
        return is_as_loaded and self.takes == self.unsent + 1

    @property
    def outcome(self) -> Outcome:
        had_arrived = self.had_arrived or self.earlier_arrived
        return outcome_of(self.state, self.payout_end, had_arrived=had_arrived)

    @property
    def is_final(self) -> bool:
        return self.payout_end.is_final


@attrs.frozen
class Batch:
    """What a ledger knows of a batch as a whole."""

    binding: Binding
    created_at: float
    rows: int
    """How many rows were imported; of an outbox, how many there are."""
    totals: Mapping[str, Decimal]
    """{currency: sum of the rows' amounts, major units}, as imported, or after accepted edits."""
    is_outbox: bool = False
    paused: str | None = None
    """Why no row is sent now; None while rows are."""
    is_confirmed: bool = False
    """True if the total was confirmed, as a live key asks for."""
    doubts: int = 0
    """Rows that were imported though a value of theirs is probably a slip."""
    limit_reason: str | None = None
    """How much of it may be taken; None for all."""
    max_failure_rate: float | None = None
    guard: str = ""
    """The digest of the guards that the batch is run under; "" for none."""
    oldest: float | None = None
    """The service's time of the oldest payout of the batch that an answer or a reading has shown."""
    read_at: float = 0.0
    """When the latest reading of the list ended, whole or not."""
    read_all: float = 0.0
    """When the latest reading of the list from its very beginning began; 0.0 before the first."""
    certificate: Mapping[str, Any] | None = attrs.field(default=None, repr=False)
    """The latest certificate, as `Certificate.to_json` writes it."""
    forgotten_at: float | None = None
    """When its rows were deleted; None while they are there."""
    forgotten_before: float = 0.0
    """Of an outbox: rows that were final and decided before are deleted."""
    now: float = 0.0
    """The database's clock when this was read."""
    unreadable: str | None = None
    """Why its line in the ledger cannot be read: then only the name is known. None for any other."""


@attrs.frozen
class StatusChange:
    """A status of a row's payout that differs from what the service had said of the row before."""

    status: str | None
    """The status; None where the service shows timestamps alone."""
    payout_id: str
    """The payout that it is about."""
    at: float
    """When the ledger recorded it, seconds since 1970."""
    service_at: float | None
    """The service's own time of it: `completed_at`, `failed_at`; None where it shows none."""
    contradicts: bool = False
    """True if the payout's timestamps contradict it."""


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
    is_doubted: bool = False
    """True if something may have been sent for it of which nothing is proven."""

    @property
    def is_acceptable(self) -> bool:
        """True if `accept_edits` can apply it: every send of the row is proven to have made nothing."""
        if self.is_doubted:
            return False
        if self.what == "removed":
            return self.state is RowState.NEW
        can_change = self.state in (RowState.NEW, RowState.REJECTED)
        return self.what == "changed" and can_change and "reference" not in self.fields

    def __str__(self) -> str:
        """`row 3 (line 4, key a-3): changed amount, REJECTED`; a key that is hidden is left out."""
        line = [] if self.line is None else [f"line {self.line}"]
        key = [] if self.row_key == HIDDEN else [f"key {self.row_key}"]
        place = f" ({', '.join([*line, *key])})" if line or key else ""
        fields = f" {' '.join(self.fields)}" if self.fields else ""
        state = "" if self.state is None else f", {self.state}"
        return f"row {self.number}{place}: {self.what}{fields}{state}"


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
