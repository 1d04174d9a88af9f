"""The real client, engine and ledger in the worlds of the simulation.

    python -m tests.simulation code 2000                so many schedules; 1 and the seed on the first breach
    python -m tests.simulation code 1 --first 7 --trace one seed, line by line
    python -m tests.simulation code --ablate            leaves out rules of the real engine

`wire` puts the model service behind HTTP, `line` is the client's transport, `machine` the computer under the
processes (SQLite inline, locks, a disk that fills up, death without `finally`), `books` what every commit
said and whether it was true, `process` one start of the program, `office` the operator, `play` a schedule.
"""
