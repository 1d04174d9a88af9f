"""The page of a batch: shows its ledger in a browser of this machine, while it is paid and at rest.

page     serves it: `serve_page`
feed     what pages are made of, read at most once a second while somebody looks; news
site     which address shows what, and to whom
access   one-time tickets, and the secret
browser  the person's browser
view     what the templates show; `chart` draws. Pure.
"""

from __future__ import annotations

from .page import BatchPage as BatchPage
from .page import serve_page as serve_page
