"""The ledger in a PostgreSQL database: many batches, worked on by many processes.

    (lease,) = await grant(database, worker, batch, chunk=1)
    renewal = await renew(database, worker, [lease])        # every 3 seconds
    await give_back(database, worker, [lease])

A lease says which worker may send a chunk's rows, and until when on the database's clock. It is a random
number in the chunk's row: a worker holds the lease while its own number is equal. Every commit of an intent
compares the two (`commits`). Leases keep workers apart; the reference prevents a second payment.

Importing its modules imports psycopg: import them where a database is opened.
"""
