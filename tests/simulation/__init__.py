"""The bulk protocol in worlds made to break it.

    python -m tests.simulation 100000       so many schedules; 1 and the seed on the first breach
    python -m tests.simulation --ablate     leaves out each rule: each must go wrong within 1,000 seeds
    python -m tests.simulation code 2000    the real client, engine and ledger in the same worlds (`real`)
    python -m tests.simulation fleet 20000  many processes that share one rate limit (`fleet`)
    python -m tests.simulation machines     many workers, one ledger that may lose commits (`machines`)

One schedule is one world: a model service with one behaviour of those the interface leaves open, disks that
lose what was not committed, clocks that jump, operators who edit files and delete ledgers, and a model engine
that decides everything with the real pure functions of `payments_async.bulk`. A seed fixes all of it.
"""
