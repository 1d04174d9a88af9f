"""The page of a batch: its ledger in a browser of this machine, while it is paid and at rest, or as a file.

page  serves it: `serve_page`; writes it: `write_page`
feed  the figures it is made of, read at most once a second
site  the one address, and who may ask for it
view  what the template shows. Pure.

row_keys  the rows' own names by reference, for the pages of a sandbox
"""

from __future__ import annotations

from .page import BatchPage as BatchPage
from .page import serve_page as serve_page
from .page import write_page as write_page
from .row_keys import RowKeys as RowKeys
