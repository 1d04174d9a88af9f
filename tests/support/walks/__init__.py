"""A random walk of one batch: its steps, the lists that it reads, and the service's books that judge it."""
