# From payments_async/events.py; change that, then run: python -m tools.mirror
"""The same objects as in `payments_async.events`."""

from payments_async.events import LONG as LONG
from payments_async.events import AttemptEnded as AttemptEnded
from payments_async.events import CallCancelled as CallCancelled
from payments_async.events import CallEnded as CallEnded
from payments_async.events import CallStarted as CallStarted
from payments_async.events import Event as Event
from payments_async.events import GateClosed as GateClosed
from payments_async.events import LimitStoreFound as LimitStoreFound
from payments_async.events import LimitStoreLost as LimitStoreLost
from payments_async.events import Listener as Listener
from payments_async.events import Replayed as Replayed
from payments_async.events import RequestSent as RequestSent
from payments_async.events import RetryScheduled as RetryScheduled
from payments_async.events import Throttled as Throttled
