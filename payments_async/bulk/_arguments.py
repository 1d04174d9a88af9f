"""Keyword arguments of a batch's methods, written down once."""

from __future__ import annotations

import os
from typing import TypedDict


class ReadingOptions(TypedDict, total=False):
    """How an input is read, by `load` and by `preview`."""

    batch_id: str | None
    """Names the batch; else it is the hash of the input. Every row's reference is made of it, so that the
    same batch is never paid twice, not even from another ledger. A live key needs a name for a new batch,
    unless every row has a reference of its own."""
    reference_prefix: str
    """In front of every reference that is made."""
    proofs: bool
    """Mark each payout with one metadata pair that shows whose it is; rows keep nine. Default True."""
    skip_invalid: bool
    """Leave rows with faults out, instead of refusing the input."""
    rejects: str | os.PathLike[str] | None
    """Where to write the rows with faults, to be corrected (mode 0600), each with the reference that it has
    in this batch. The input is then read once more."""
    strict_amounts: bool
    """Refuse amounts of more than 15 significant digits, instead of warning."""


class LoadOptions(ReadingOptions, total=False):
    """What `load` may do with an input."""

    accept_edits: bool
    """Of an input that was edited: give rows that are new or rejected their new content, under the same
    reference, and call off new rows that are gone. All of it or nothing: any other difference refuses."""
    pay_again: bool
    """Import an input that a ledger beside this one has under another batch id: its rows are paid again."""
