"""Where a ledger is: a file, or a batch in a PostgreSQL database; and the commands about it.

Its password is shown nowhere: not in messages, lines, names of files or the arguments of a process.
"""

from __future__ import annotations

import os
import re
import shlex
from contextlib import suppress
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

import attrs

from ..._files import file_name
from .._files import PARQUET_START, SQLITE_START
from .._ledger.opening import is_database
from ..errors import BulkError

if TYPE_CHECKING:
    from ...client import AsyncPayments
    from ..batch import AnyBatch
    from ..shared_batch import SharedBatch

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_USER: Final = re.compile(r"(?s)\A([^:]*://[^:/?#@]*):.*@")
_PARAMETER: Final = re.compile(r"(?s)([?&])([^=&]*)=([^&]*)")
_KEYWORD: Final = re.compile(
    r"(?is)(^|\s)([a-z]{0,20}(?:password|secret)[a-z_]{0,20}\s{0,9}=\s{0,9})(?:'(?:[^'\\]|\\.)*'?|(?:[^\s\\]|\\.)*)"
)
_SECRETS: Final = ("password", "secret")


@attrs.frozen
class LedgerAddress:
    """A ledger's address, and the batch in it."""

    text: str = attrs.field(repr=False)
    """The path, or the URL with its password."""
    batch_id: str | None = None
    """The batch's name, as it was given."""
    is_default: bool = False
    """True if the address came from PAYMENTS_LEDGER."""
    is_insecure: bool = False
    """True if a database on another machine may be used without verified TLS."""

    @property
    def is_database(self) -> bool:
        """True if the ledger is in a database."""
        try:
            return is_database(self.text)
        except BulkError:  # of a kind that nothing opens
            return False

    def is_archive(self) -> bool:
        """Look whether the file begins as an archive; or has its suffix, and does not begin as a ledger.

        Not while this process has the ledger open: closing a handle to the file ends SQLite's locks on it.
        """
        if self.is_database:
            return False
        start, is_named = b"", self.text.lower().endswith(".parquet")
        with suppress(OSError):
            if os.path.isfile(self.text):
                with open(self.text, "rb") as file:
                    start = file.read(len(SQLITE_START))
        return start.startswith(PARQUET_START) or (is_named and start != SQLITE_START)

    @property
    def has_visible_password(self) -> bool:
        """True if a password stands among the command's arguments."""
        return not self.is_default and self.shown != self.text

    @property
    def shown(self) -> str:
        """The address without its password."""
        return without_password(self.text)

    @property
    def label(self) -> str:
        """The address for people, with the batch."""
        return f"{self.shown} batch {self.batch_id}" if self.is_database and self.batch_id else self.shown

    def command(self, name: str, *more: str) -> str:
        """The command line of another command about this ledger, ready for a shell."""
        place = () if self.is_default else (self.shown,)
        return shlex.join(("payments", "payouts", name, *place, *more, *self._options))

    def option_command(self, name: str, *more: str) -> str:
        """The same for commands that take the ledger as an option."""
        place = () if self.is_default else ("--ledger", self.shown)
        return shlex.join(("payments", "payouts", name, *more, *place, *self._options))

    @property
    def _options(self) -> tuple[str, ...]:
        """The options that find a batch in a database."""
        name = ("--batch-id", self.batch_id) if self.batch_id else ()
        insecure = ("--insecure-database",) if self.is_insecure else ()
        return (*name, *insecure) if self.is_database else ()

    def of_batch(self, batch_id: str) -> LedgerAddress:
        """The same ledger with the batch's name, where a name is needed to find the batch."""
        return attrs.evolve(self, batch_id=batch_id) if self.is_database else self

    def beside(self, suffix: str) -> str:
        """The path of a file about the batch: beside the ledger's file, or in the folder of the command."""
        if not self.is_database:
            return f"{self.text}.{suffix}"
        return f"{file_name(self.batch_id or 'batch')}.{suffix}"


def without_password(text: str) -> str:
    """An address with `***` in place of its password; a path as it is."""
    if _SCHEME.match(text):
        text = _PARAMETER.sub(_masked, _USER.sub(r"\1:***@", text))
    return _KEYWORD.sub(r"\1\2***", text)


def _masked(parameter: re.Match[str]) -> str:
    """A parameter of an address, whose name may be percent-encoded."""
    is_secret = any(word in unquote(parameter[2]).lower() for word in _SECRETS)
    return f"{parameter[1]}{parameter[2]}=***" if is_secret else parameter[0]


def open_batch(
    ledger: LedgerAddress, client: AsyncPayments | None = None, *, create: bool = True
) -> AnyBatch:
    """The batch at this address, to be entered."""
    from ..batch import PayoutBatch  # imports the client: `payments --help` does not wait for it

    if ledger.is_database:
        return open_shared(ledger, client, create=create)
    return PayoutBatch.open(ledger.text, client, create=create, batch_id=ledger.batch_id)


def open_shared(
    ledger: LedgerAddress, client: AsyncPayments | None = None, *, create: bool = True
) -> SharedBatch:
    """The batch in this database, to be entered."""
    from ..shared_batch import SharedBatch

    return SharedBatch.open(
        ledger.text,
        client,
        create=create,
        batch_id=ledger.batch_id,
        insecure_database=ledger.is_insecure,
    )
