"""Many payouts: each row of a file paid at most once, none lost, every doubtful one shown.

The protocol is pure, and everything that moves asks it what to do:

    _safeguards    one switch for each rule; production never turns one off
    _identifiers   batch, reference, idempotency key, proof of ownership
    _states        what is known of a row, which transitions exist, how two accounts of a row merge
    _attempts      what one attempt proves, and what to do after it
    _ages          how old something is when clocks cannot be trusted
    _witness       whether a payout found under a row's reference is the row's
    _rules         what to do with a row at start-up, before sending, after a walk of the list
    _closing       counts, completeness, exit codes, stop rules

Safety rests on one fact of the interface: a payout's `reference` is unique within the project, and a
duplicate returns 409 (`docs/interface.md`, Endpoints, POST /payouts). A row's reference never changes, so
whoever sends the row again, from whatever ledger, with whatever key and clock, cannot pay it twice. The
ledger, the idempotency key and the waiting times make it fast and its verdicts true.
"""
