"""Many workers, one ledger in a database that may fall back to an older copy: the protocol attacked there.

    python -m tests.simulation machines 100000      so many schedules; 1 and the seed on the first breach
    python -m tests.simulation machines --ablate    leaves out each rule: each must go wrong in 1,000 seeds

`database` is the server: chunks, leases, commits, and copies that lack the newest. `line` is a process's
connection to it, `leased` a worker's view of a chunk, `chunk_run` the model engine over one lease, `process`
one worker with its leases, `commands` the operator, who also recovers a ledger. `watch` sees what really
happens. Service, promises and judge are those of the worlds with one machine.
"""
