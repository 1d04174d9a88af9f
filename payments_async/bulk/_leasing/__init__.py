"""Work under leases: one call of a step, for `bulk.steps` and `bulk.workers`."""
