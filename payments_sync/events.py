# From payments_async/events.py; change that, then run: python -m tools.mirror
"""The same objects as in `payments_async.events`."""

from payments_async.events import *  # noqa: F403
