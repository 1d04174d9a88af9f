# From payments_async/guard.py; change that, then run: python -m tools.mirror
"""The same objects as in `payments_async.guard`."""

from payments_async.guard import *  # noqa: F403
