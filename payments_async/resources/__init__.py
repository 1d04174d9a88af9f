"""The resources of a client: one module each, one method per operation."""
