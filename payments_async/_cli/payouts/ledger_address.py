"""The ledger that a command is about, from its argument or from PAYMENTS_LEDGER. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ...bulk import is_database
from ...bulk._texts.ledger_address import LedgerAddress, without_password
from ...bulk.errors import BulkError
from .._exit_codes import CommandEnded, Exit

VARIABLE: Final = "PAYMENTS_LEDGER"
"""The environment variable of the ledger's address."""


def visible_password(whose: str, variable: str) -> str:
    """The warning about a password among a command's arguments."""
    return (
        f"{whose} password is on the command line, where everybody on this machine can read it: put the "
        f"address into {variable}; PostgreSQL's may also be in a password file (PGPASSFILE)"
    )


def require_address(
    given: str | None, environment: Mapping[str, str], otherwise: str | None = None
) -> LedgerAddress:
    """The address that was given, else that of PAYMENTS_LEDGER, else `otherwise`. Raises CommandEnded."""
    text = given or environment.get(VARIABLE)
    if text:
        try:
            is_database(text)
        except BulkError as unknown:
            raise CommandEnded(f"{without_password(text)}: {unknown}", Exit.USAGE) from None
        return LedgerAddress(text, is_default=not given)
    if otherwise is None:
        missing = f"no ledger: give its path or address (postgresql://…), or set {VARIABLE}"
        raise CommandEnded(missing, Exit.USAGE)
    return LedgerAddress(otherwise)


def require_database(address: LedgerAddress, why: str) -> LedgerAddress:
    """The address, of a database. Raises CommandEnded, with why it must be one."""
    if not address.is_database:
        problem = f"{address.shown}: is not the address of a database (postgresql://…)"
        raise CommandEnded(f"{problem}; {why}", Exit.USAGE)
    return address


def require_batch(address: LedgerAddress) -> LedgerAddress:
    """The address, with a batch's name if it is a database's. Raises CommandEnded."""
    if address.is_database and not address.batch_id:
        listed = f"`{address.command('batches')}` lists them"
        problem = f"{address.shown}: a database has many batches; name one with --batch-id: {listed}"
        raise CommandEnded(problem, Exit.USAGE)
    return address
