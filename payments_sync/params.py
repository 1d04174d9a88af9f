# From payments_async/params/__init__.py; change that, then run: python -m tools.mirror
"""The same objects as in `payments_async.params`."""

from payments_async.params import *  # noqa: F403
