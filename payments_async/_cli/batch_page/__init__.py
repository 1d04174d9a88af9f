"""The page of a batch: served by its run on this machine, and by `payments payouts watch`.

serving       for the time of a run: the server, the file beside the ledger, the browser
watch         `payments payouts watch`
server        the socket
feed          what pages are made of, read at most once a second; news
http_server   pages and event streams over HTTP; imported with the first visitor, as all below
site          which address shows what, and to whom
access        one-time tickets, the cookie and the token
browser       the person's browser
address_file  `LEDGER.page.json`, and asking the run that wrote it
source        the figures: of the run that holds the ledger, or read from one that nobody works on
view, charts  what the templates show. Pure.
"""
