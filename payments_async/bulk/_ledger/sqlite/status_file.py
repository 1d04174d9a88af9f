"""`LEDGER.status.json`: the progress of a run, readable while the ledger is locked.

It names the batch and its input too, so that an import finds the other ledgers of its folder that have them.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from typing import Any, Final

import attrs

from ...._files import write_text
from ..._files import STATUS_SUFFIX
from ..._protocol.outcomes import RowTotals, counts_of, sums_of, sums_text
from ..._protocol.records import Binding, Header
from ...ledger_errors import InputPaidElsewhere

_VERSION: Final = 2
_LONGEST: Final = 1 << 20
"""Characters at most: a longer file is not ours."""


def report(
    totals: RowTotals,
    header: Header,
    *,
    pid: int,
    at: float,
    running: bool,
    activity: Mapping[str, Any] | None = None,
    speed: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Make the file's content: counts and sums by outcome, never a row. Times are seconds UTC."""
    binding = header.binding
    return {
        "version": _VERSION,
        "batch_id": binding.batch_id,
        "environment": binding.environment,
        "input_hash": binding.input_hash,
        "pid": pid,
        "at": at,
        "running": running,
        "activity": activity,
        "speed": speed,
        "rows": counts_of(totals, header.extra),
        "sums": sums_text(sums_of(totals, header.extra)),
    }


@attrs.frozen
class StatusFile:
    """The file beside a ledger. It is replaced whole, so a reader never sees half of it; mode 0600."""

    path: str

    @classmethod
    def of(cls, ledger: str) -> StatusFile:
        """The status file of the ledger at this path."""
        return cls(ledger + STATUS_SUFFIX)

    def write(self, said: dict[str, Any]) -> bool:
        """Replace the content. Returns False when it cannot be written: a run continues without it."""
        try:
            write_text(self.path, json.dumps(said, separators=(",", ":")), durable=False)
        except OSError:
            return False
        return True

    def remove(self) -> None:
        """Remove the file; one that cannot be removed stays."""
        with contextlib.suppress(OSError):
            os.unlink(self.path)

    def read(self) -> dict[str, Any] | None:
        """Read the content; None when the file is missing or unreadable."""
        try:
            with open(self.path, encoding="utf-8") as file:
                said = json.loads(file.read(_LONGEST))
        except (OSError, ValueError, RecursionError):
            return None
        return said if isinstance(said, dict) and said.get("version") == _VERSION else None


def paid_elsewhere(ledger: str, binding: Binding) -> InputPaidElsewhere | None:
    """Find another ledger, in the folder of `ledger`, that holds the same input; None when there is none.

    Only status files are read; unreadable or foreign ones are ignored (`Ledger.paid_elsewhere`).
    """
    for path, status in _status_files_beside(ledger):
        same = status.get("input_hash") == binding.input_hash
        here = not binding.environment or status.get("environment") in (None, binding.environment)
        other = status.get("batch_id")
        if same and here and isinstance(other, str) and other != binding.batch_id:
            name = os.path.basename(path).removesuffix(STATUS_SUFFIX)
            return InputPaidElsewhere(ledger, batch_id=other, ledger=name)
    return None


def _status_files_beside(ledger: str) -> Iterator[tuple[str, dict[str, Any]]]:
    own = StatusFile.of(ledger).path
    try:
        with os.scandir(os.path.dirname(os.path.abspath(ledger))) as entries:
            files = sorted(
                each.path for each in entries if each.is_file() and each.name.endswith(STATUS_SUFFIX)
            )
    except OSError:  # a folder that may not be listed
        return
    for path in files:
        if path != own and (status := StatusFile(path).read()) is not None:
            yield path, status
