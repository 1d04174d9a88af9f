# From payments_async/resources/__init__.py; change that, then run: python payments_sync/_mirror.py
"""The resources of a client: one module each, one method per operation."""
