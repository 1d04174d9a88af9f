"""Leases of chunks: who may send which rows, until when. Granted and renewed on the database's clock.

    (lease,) = await grant(database, worker)
    renewal = await renew(database, worker, [lease])        # every 3 seconds
    await give_back(database, worker, [lease])

A lease is a random number in the chunk's row, compared by equality. Every commit of an intent proves it
(`commits`). It keeps workers apart; what prevents a second payment is the reference.
"""
