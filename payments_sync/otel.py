# From payments_async/otel.py; change that, then run: python -m tools.mirror
"""The same objects as in `payments_async.otel`."""

from payments_async.otel import *  # noqa: F403
