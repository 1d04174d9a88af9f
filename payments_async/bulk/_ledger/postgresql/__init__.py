"""The ledger in a PostgreSQL database: many batches, worked on by many processes.

Importing its modules imports psycopg: import them where a database is opened.
"""
