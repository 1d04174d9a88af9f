# From payments_async/bulk/sources/__init__.py; change that, then run: python -m tools.mirror
"""The same objects as in `payments_async.bulk.sources`."""

from payments_async.bulk.sources import CsvSource as CsvSource
from payments_async.bulk.sources import FaultCollector as FaultCollector
from payments_async.bulk.sources import FileSource as FileSource
from payments_async.bulk.sources import FileStat as FileStat
from payments_async.bulk.sources import Item as Item
from payments_async.bulk.sources import IterableSource as IterableSource
from payments_async.bulk.sources import JsonLinesSource as JsonLinesSource
from payments_async.bulk.sources import RejectsFile as RejectsFile
from payments_async.bulk.sources import Row as Row
from payments_async.bulk.sources import RowFault as RowFault
from payments_async.bulk.sources import Source as Source
from payments_async.bulk.sources import SourceItem as SourceItem
from payments_async.bulk.sources import open_source as open_source
