"""The durable ledger of a batch."""

from .ledger import Ledger

__all__ = ["Ledger"]
