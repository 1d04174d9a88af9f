"""The same input in another ledger beside this one: its rows could be paid twice, under other references."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from ._status_file import SUFFIX, StatusFile
from .ledger_errors import InputPaidElsewhere
from .protocol.records import Binding


def paid_elsewhere(ledger: str, binding: Binding) -> InputPaidElsewhere | None:
    """What another ledger in the folder of `ledger` says of the same input; None when none does.

    Only the status files are read; those that cannot be, or are something else, say nothing. The same
    batch id gives the same references, which the service pays once; another environment pays no money of
    this one's (`""`: any environment).
    """
    for path, said in _told_beside(ledger):
        same = said.get("input_hash") == binding.input_hash
        here = not binding.environment or said.get("environment") in (None, binding.environment)
        other = said.get("batch_id")
        if same and here and isinstance(other, str) and other != binding.batch_id:
            name = os.path.basename(path).removesuffix(SUFFIX)
            return InputPaidElsewhere(ledger, batch_id=other, ledger=name)
    return None


def _told_beside(ledger: str) -> Iterator[tuple[str, dict[str, Any]]]:
    own = StatusFile.of(ledger).path
    try:
        with os.scandir(os.path.dirname(os.path.abspath(ledger))) as entries:
            files = sorted(each.path for each in entries if each.is_file() and each.name.endswith(SUFFIX))
    except OSError:  # a folder that may not be listed
        return
    for path in files:
        if path != own and (said := StatusFile(path).read()) is not None:
            yield path, said
