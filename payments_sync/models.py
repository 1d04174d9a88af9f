# From payments_async/models/__init__.py; change that, then run: python -m tools.mirror
"""The same objects as in `payments_async.models`."""

from payments_async.models import *  # noqa: F403
