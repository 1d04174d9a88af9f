# From payments_async/testing/__init__.py; change that, then run: python -m tools.mirror
"""The same objects as in `payments_async.testing`."""

from payments_async.testing import IN_PROCESS as IN_PROCESS
from payments_async.testing import InProcessTransport as InProcessTransport
from payments_async.testing import MoneyFault as MoneyFault
from payments_async.testing import SandboxClock as SandboxClock
from payments_async.testing import SandboxTenant as SandboxTenant
from payments_async.testing import SkippingRuntime as SkippingRuntime
from payments_async.testing import adapt_aioresponses as adapt_aioresponses
