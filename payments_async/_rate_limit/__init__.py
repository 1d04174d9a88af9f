"""Rate limits of a secret key: token buckets with an in-flight window, and their queues of callers."""
