"""The form of an archive: a Parquet file with a row for each payout, and the batch in its footer.

    number row_key … digest     the row as the ledger has it
    outcome first_sent_at …     what follows from it, for people
    attempts                    its attempts, as JSON text
    entries                     a list: entries of its chunk's chain, which are spread over the chunk's rows
    payments.archive            in the footer, as JSON text: batch, chunks, its own chain, certificate

Without accounts a keyed hash stands for what tells an account (`stored_rows.OF_ACCOUNT`), and for the input's
hashes. Then the key is not in the file either: a row's digest, which covers the keyed hash, can be checked.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

import pyarrow

from ....models.statuses import PayoutEnd
from ..._protocol.outcomes import outcome_of
from ..._protocol.row_state import RowState
from ..stored_rows import COLUMNS, CONTENT, OF_ACCOUNT, STATE
from ..tables import ENTRIES, ROW_STATES, ROWS

FORMAT: Final = 1
"""The number of this form."""
HEADER: Final = b"payments.archive"
"""The footer's key of the header."""
HEADER_HASH: Final = b"payments.archive.sha256"
RECORD: Final = (*COLUMNS, "version", "own_key", "rank", "digest")
"""What a statement reads of a row (`stored_rows.stored_row`)."""
SECRET: Final = frozenset({*OF_ACCOUNT, "own_key"})
"""The columns that are there only with accounts."""
ENTRY: Final = (
    *("number", "wall", "monotonic", "session", "server"),
    *("kind", "changes", "rows_digest", "hash", "lease"),
)
"""What a statement reads of an entry (`chunks.entry_of`)."""
SHOWN: Final = ("outcome", "first_sent_at", "changed_at")
"""What follows from a row (`shown`)."""
SHOWN_OF: Final = ("state", "payout_end", "had_arrived", "earlier_arrived", "first_intent", "changed_in")
FEW: Final = ("currency", "method", "state", "outcome", "service_status", "payout_end", "failure_code")
"""Columns with few values, each of which is stored once."""
_FIRST: Final = (
    *("number", "row_key", "reference", "amount", "currency", "method", "state", "outcome"),
    *("payout_id", "service_status", "first_sent_at", "changed_at"),
)
_KINDS: Final = {
    **{name: ROWS.columns[name] for name in CONTENT},
    **{name: ROW_STATES.columns[name] for name in (*STATE, "version", "rank", "digest")},
    **dict.fromkeys(("own_key", "account", "outcome", "attempts"), "text"),
}
_ARROW: Final = {
    "int2": "int16",
    "int4": "int32",
    "int8": "int64",
    "float8": "float64",
    "bool": "bool",
    "bytea": "binary",
    "text": "string",
}
BOOLEANS: Final = tuple(name for name, kind in _KINDS.items() if kind == "bool")


def schema(*, accounts: bool) -> Any:
    """The columns, those that people look at first."""
    names = [name for name in RECORD if accounts or name not in SECRET]
    rest = [name for name in names if name not in _FIRST]
    entry = pyarrow.struct(
        [("chunk", pyarrow.int32()), *((name, _arrow(ENTRIES.columns[name])) for name in ENTRY)]
    )
    fields = [
        (name, _type(name)) for name in (*_FIRST, *rest, *(() if accounts else ("account",)), "attempts")
    ]
    return pyarrow.schema([*fields, ("entries", pyarrow.list_(entry))])


def _type(name: str) -> Any:
    return pyarrow.timestamp("us", tz="UTC") if name.endswith("_at") else _arrow(_KINDS[name])


def _arrow(kind: str) -> Any:
    return pyarrow.type_for_alias(_ARROW[kind.removesuffix(" NULL")])


def moment(wall: float, server: float | None) -> int:
    """A time of an entry, by the service's clock where that is known: microseconds since 1970."""
    return round((wall if server is None else server) * 1_000_000)


def shown(facts: tuple[Any, ...], at: Mapping[int, int]) -> tuple[str, int | None, int | None]:
    """The values of `SHOWN` of a row, of those of `SHOWN_OF`. Raises ValueError for values that none has.

    `at`: {entry: its `moment`}, of the row's chunk.
    """
    state, end, had_arrived, earlier_arrived, sent, changed = facts
    outcome = outcome_of(RowState(state), PayoutEnd(end), had_arrived=bool(had_arrived or earlier_arrived))
    return outcome.value, at.get(sent), at.get(changed)


def attempts_line(number: int, text: str) -> bytes:
    """The attempts of a row, for the hash over all of them."""
    return f"{number} {text}\n".encode()


def header_text(header: Mapping[str, Any]) -> dict[bytes, bytes]:
    """The footer's metadata with this header; its bytes are written as `{"hex": "…"}`."""
    text = json.dumps(header, default=lambda raw: {"hex": raw.hex()}).encode()
    return {HEADER: text, HEADER_HASH: header_hash(text)}


def header_hash(text: bytes) -> bytes:
    """The hash that stands beside a header."""
    return hashlib.sha256(text).hexdigest().encode()


def read_header(text: bytes) -> dict[str, Any]:
    """Parse what `header_text` wrote. Raises one of the errors of `readable`."""
    found: dict[str, Any] = json.loads(text, object_hook=_with_bytes)
    return found


def _with_bytes(found: dict[str, Any]) -> Any:
    return bytes.fromhex(found["hex"]) if found.keys() == {"hex"} else found
