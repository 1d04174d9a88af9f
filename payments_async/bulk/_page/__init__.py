"""The page of a batch: served by its run on this machine, and by `payments payouts watch`.

What is imported here is what commands use of it.

serving       for the time of a run: the server, the file beside the ledger; opening it
server        the socket
feed          what pages are made of, read at most once a second; news
site          which address shows what, and to whom; imported with the first visitor, as all below
access        one-time tickets, and the secret
browser       the person's browser
address_file  `LEDGER.page.json`, and asking the run that wrote it
source        the figures: of the run that holds the ledger, or read from one that nobody works on
view, charts  what the templates show. Pure.
"""

from __future__ import annotations

from .address_file import ask_running as ask_running
from .server import BatchPageServer as BatchPageServer
from .serving import RunPage as RunPage
from .serving import open_elsewhere as open_elsewhere
from .serving import open_page as open_page
from .serving import run_page as run_page
from .source import LedgerSource as LedgerSource
from .source import PageElsewhere as PageElsewhere
from .source import Phase as Phase
