# From payments_async/bulk/ledger_errors.py; change that, then run: python -m tools.mirror
"""The same objects as in `payments_async.bulk.ledger_errors`."""

from payments_async.bulk.ledger_errors import InputPaidElsewhere as InputPaidElsewhere
from payments_async.bulk.ledger_errors import LedgerBroken as LedgerBroken
from payments_async.bulk.ledger_errors import LedgerClosed as LedgerClosed
from payments_async.bulk.ledger_errors import LedgerDamaged as LedgerDamaged
from payments_async.bulk.ledger_errors import LedgerDuplicates as LedgerDuplicates
from payments_async.bulk.ledger_errors import LedgerError as LedgerError
from payments_async.bulk.ledger_errors import LedgerExposed as LedgerExposed
from payments_async.bulk.ledger_errors import LedgerForeign as LedgerForeign
from payments_async.bulk.ledger_errors import LedgerFull as LedgerFull
from payments_async.bulk.ledger_errors import LedgerGone as LedgerGone
from payments_async.bulk.ledger_errors import LedgerLocked as LedgerLocked
from payments_async.bulk.ledger_errors import LedgerMismatch as LedgerMismatch
from payments_async.bulk.ledger_errors import LedgerMissing as LedgerMissing
from payments_async.bulk.ledger_errors import LedgerNewer as LedgerNewer
from payments_async.bulk.ledger_errors import LedgerOfAnotherAddress as LedgerOfAnotherAddress
from payments_async.bulk.ledger_errors import LedgerOfAnotherBatch as LedgerOfAnotherBatch
from payments_async.bulk.ledger_errors import LedgerOfAnotherEnvironment as LedgerOfAnotherEnvironment
from payments_async.bulk.ledger_errors import LedgerOfAnotherInput as LedgerOfAnotherInput
from payments_async.bulk.ledger_errors import LedgerOfAnotherKey as LedgerOfAnotherKey
from payments_async.bulk.ledger_errors import LedgerOnNetwork as LedgerOnNetwork
from payments_async.bulk.ledger_errors import LedgerReadOnly as LedgerReadOnly
from payments_async.bulk.ledger_errors import LedgerRefused as LedgerRefused
