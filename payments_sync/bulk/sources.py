# From payments_async/bulk/sources/__init__.py; change that, then run: python -m tools.mirror
"""The same objects as in `payments_async.bulk.sources`."""

from payments_async.bulk.sources import *  # noqa: F403
