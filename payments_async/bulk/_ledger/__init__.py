"""The durable ledger of a batch: the rows, and everything that is known of each."""
