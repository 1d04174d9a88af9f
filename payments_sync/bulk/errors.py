# From payments_async/bulk/errors.py; change that, then run: python -m tools.mirror
"""The same objects as in `payments_async.bulk.errors`."""

from payments_async.bulk.errors import BatchIdRequired as BatchIdRequired
from payments_async.bulk.errors import BulkError as BulkError
from payments_async.bulk.errors import InputPaidElsewhere as InputPaidElsewhere
from payments_async.bulk.errors import LedgerError as LedgerError
from payments_async.bulk.errors import LedgerMismatch as LedgerMismatch
from payments_async.bulk.errors import LedgerMissing as LedgerMissing
from payments_async.bulk.errors import LedgerOfAnotherInput as LedgerOfAnotherInput
from payments_async.bulk.errors import LedgerUnavailable as LedgerUnavailable
from payments_async.bulk.errors import OutboxConflict as OutboxConflict
from payments_async.bulk.errors import RowFault as RowFault
from payments_async.bulk.errors import SourceErrors as SourceErrors
from payments_async.bulk.errors import SourceUnreadable as SourceUnreadable
from payments_async.bulk.errors import access_problem as access_problem
