# From payments_async/resources/__init__.py; change that, then run: python -m tools.mirror
"""The resources of a client: one module each, one method per operation."""
