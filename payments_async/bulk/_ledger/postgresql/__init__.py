"""The ledger in a PostgreSQL database: many batches, worked on by many processes.

    (lease,) = await grant(database, worker)
    renewal = await renew(database, worker, [lease])        # every 3 seconds
    await give_back(database, worker, [lease])

A lease of a chunk says who may send its rows, until when on the database's clock: a random number in the
chunk's row, compared by equality. Every commit of an intent proves it (`commits`). It keeps workers apart;
what prevents a second payment is the reference.

Importing its modules imports psycopg: import them where a database is opened.
"""
