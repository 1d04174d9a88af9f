"""The ledger that a command or a page is about, and the commands about it. No password is shown anywhere."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Final

import attrs

if TYPE_CHECKING:
    from ...client import AsyncPayments
    from ..batch import PayoutBatch

_USER: Final = re.compile(r"(?s)\A([A-Za-z][A-Za-z0-9+.-]*://[^:/?#@]*):.*@")
_PARAMETER: Final = re.compile(
    r"(?is)((?:(?:password|secret)[a-z_]{0,20}|[?&][^=&\s%]{0,40}%[^=&\s]{0,60})\s{0,9}=\s{0,9})"
    r"(?:'(?:[^'\\]|\\.)*'?|(?:[^\s&\\]|\\.)*)"
)
"""A password as a parameter of an address, whose name may be percent-encoded, or as libpq's keyword."""


@attrs.frozen
class LedgerAddress:
    """A ledger, and the batch in it."""

    text: str = attrs.field(repr=False)
    """The path of a file, or the address of a database with its password."""
    batch_id: str | None = None
    is_default: bool = False
    """True if the address came from PAYMENTS_LEDGER."""
    is_insecure: bool = False
    """True if a database on another host may be used without a checked certificate."""

    @property
    def is_database(self) -> bool:
        """True for a database on a server. Raises BulkError for an address of a kind that nothing opens."""
        from .._ledger.database import path_of  # here: commands that open no ledger start without SQLAlchemy

        return path_of(self.text) is None

    @property
    def has_visible_password(self) -> bool:
        """True if a password stands among the command's arguments."""
        return not self.is_default and self.shown != self.text

    @property
    def shown(self) -> str:
        """The address without its password."""
        return without_password(self.text)

    def command(self, name: str, *more: str) -> str:
        """Another command about this batch, ready for a shell."""
        place = () if self.is_default else (self.shown,)
        batch = ("--batch-id", self.batch_id) if self.batch_id else ()
        insecure = ("--insecure-database",) if self.is_insecure else ()
        return shlex.join(("payments", "payouts", name, *place, *more, *batch, *insecure))


def without_password(text: str) -> str:
    """An address with `***` in place of its password; a path as it is."""
    return _PARAMETER.sub(r"\1***", _USER.sub(r"\1:***@", text))


def open_batch(
    ledger: LedgerAddress, client: AsyncPayments | None = None, *, create: bool = True
) -> PayoutBatch:
    """The batch at this address, to be entered."""
    from ..batch import PayoutBatch  # here: `payments --help` does not wait for the client

    return PayoutBatch.open(
        ledger.text, client, batch_id=ledger.batch_id, create=create, insecure_database=ledger.is_insecure
    )
