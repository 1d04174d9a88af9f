# From payments_async/errors.py; change that, then run: python -m tools.mirror
"""The same objects as in `payments_async.errors`."""

from payments_async.errors import *  # noqa: F403
