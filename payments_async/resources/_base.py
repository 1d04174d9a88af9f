"""Shared parts of the resources: preparing, sending, reading, iterating over pages."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

import attrs

from .._attrs import maker
from .._codec import decode, encode
from .._request import prepare
from .._request.auth import SecretKey
from .._request.call import Call, Priority
from .._request.pages import ListPosition, ListReader, RecordList, read_page
from .._request.pipeline import Pipeline
from .._request.settings import count
from .._runtime import Runtime
from .._validation import rules
from ..errors import InvalidRequest
from ..params import CheckoutRequest, Params, PaymentIntentRequest, PayoutRequest, PreparedRequest
from ..params.operations import OPERATIONS, Operation, by_name, id_problems

if TYPE_CHECKING:
    from .._guard.key_guard import KeyGuard
    from .._waits.waiter import Waiting
    from ..models import Page

R = TypeVar("R")
Sending = Coroutine[Any, Any, R]
"""A call to be awaited at once, with no coroutine in between."""

_NO_OPTIONS: Any = {}
_MAKERS: dict[type, Callable[..., Params]] = {}
_own: Callable[[Any], frozenset[str]] = cache(lambda cls: frozenset(attrs.fields_dict(cls)))
"""The names of a request's fields."""


def _request(cls: type[Params], fields: Mapping[str, Any]) -> Params:
    return (_MAKERS.get(cls) or _MAKERS.setdefault(cls, _maker(cls)))(**fields)


def _maker(cls: type[Any]) -> Callable[..., Params]:
    """Make a constructor of requests; a missing field is None until it is reported with the other faults."""
    needed = [field.alias for field in attrs.fields(cls) if field.default is attrs.NOTHING]
    return maker(cls, **dict.fromkeys(needed))


def load_operations() -> None:
    """Load and compile what the first call of each kind would."""
    from .._request import resolve  # noqa: F401 - for the first call in doubt
    from .._waits import waiter  # noqa: F401 - loaded for the first wait

    for cls in (CheckoutRequest, PaymentIntentRequest, PayoutRequest):
        encode.checked_body(_request(cls, {}))
    for operation in OPERATIONS.values():
        decode.load(operation.result, page=operation.shape == "page")


class SharedWaits:
    """The waits that a client and its siblings share, loaded with the first one."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._lock = threading.Lock()
        self._made: Waiting | None = None

    def made(self) -> Waiting:
        with self._lock:
            if self._made is None:
                from .._waits.waiter import Waiting  # most programs wait for nothing

                self._made = Waiting(self._pipeline)
            return self._made


@attrs.frozen(eq=False, repr=False)
class ResourceClient:
    """The client's internal interface for its resources, `bulk` and `webhooks`."""

    pipeline: Pipeline
    waits: SharedWaits

    @property
    def waiting(self) -> Waiting:
        return self.waits.made()

    @property
    def runtime(self) -> Runtime:
        return self.pipeline.runtime

    @property
    def base_url(self) -> str:
        return self.pipeline.settings.base_url

    def key(self) -> SecretKey:
        return self.pipeline.settings.key()

    @property
    def guard(self) -> KeyGuard | None:
        """The guards of the current secret key; None when it has none."""
        return self.pipeline.keys.of(self.key()).guards.guard

    @property
    def guard_digest(self) -> str:
        """Identifies the rules of the current key's guards; "" without any."""
        return "" if self.guard is None else self.guard.digest

    def fail_closed(self) -> None:
        """End this client's calls when the limit store cannot be reached for long: for a bulk run."""
        self.pipeline.settings = attrs.evolve(self.pipeline.settings, fails_closed=True)

    def prepare(self, operation: Operation[R], cls: type[Params], arguments: Any) -> PreparedRequest[R]:
        """Prepare a write. Raises InvalidRequest, also for a key last used with another body."""
        call, options = self._writing(operation, cls, arguments, prepare.PREPARE_OPTIONS)
        prepared = call.prepared
        assert prepared is not None
        if "idempotency_key" not in options:  # one of the caller's own may have been sent before
            self.pipeline.pending.add_unsent(prepared)
        return prepared

    def create(self, operation: Operation[R], cls: type[Params], arguments: Any) -> Sending[R]:
        """Prepare at once, send when awaited."""
        call, options = self._writing(operation, cls, arguments, prepare.WRITE_OPTIONS)
        return self.pipeline.send(call, options) if options else self.pipeline.run(call)

    def _writing(
        self, operation: Operation[Any], cls: type[Params], arguments: Any, taken: frozenset[str]
    ) -> tuple[Call, Mapping[str, Any]]:
        """Make the call of a write, of the fields of its request and the options that its method takes.

        On failure, `arguments` (the call's own dict) is emptied: tracebacks print local variables.
        """
        fields, options = arguments, _NO_OPTIONS
        try:
            if not _own(cls).issuperset(arguments):
                name = operation.name
                method = name if taken is prepare.WRITE_OPTIONS else name.replace("create", "prepare")
                prepare.refuse_unknown(arguments, _own(cls) | taken, method)
                fields, options = prepare.split(arguments, taken)
            return self.pipeline.writing(operation, _request(cls, fields), options), options
        except BaseException:
            for given in (arguments, fields, options):
                given.clear()
            raise

    def send(
        self,
        prepared: PreparedRequest[R],
        options: Mapping[str, Any],
        *,
        priority: Priority,
        may_send: Callable[[], bool] | None = None,
        key: SecretKey | None = None,
    ) -> Sending[R]:
        """Send a prepared write, first with this secret key.

        `may_send` is asked right before the first byte. A write with one may be under way elsewhere too.
        """
        operation = by_name(prepared.operation)
        call = prepare.writing(prepared, options, operation=operation, key=key)
        call.priority = priority
        if may_send is None and self.pipeline.pending.take_unsent(prepared):
            return self.pipeline.run_once(call)
        if may_send is None:
            return self.pipeline.run_again(call, self.pipeline.age(prepared))
        call.sent_before, call.may_send = True, may_send
        return self.pipeline.run(call)

    def read(
        self, operation: Operation[R], options: Mapping[str, Any], ids: Mapping[str, str] | None = None
    ) -> Sending[R]:
        return self.pipeline.run(prepare.reading(operation, options, ids))

    def post(self, operation: Operation[R], options: Mapping[str, Any], ids: Mapping[str, str]) -> Sending[R]:
        """Send a POST without fields about one record."""
        prepare.refuse_unknown(options, prepare.READ_OPTIONS, operation.name)
        if faults := id_problems(ids):
            raise InvalidRequest(faults, operation=operation.name)
        record = ids[operation.record] if operation.record else None
        call = self.pipeline.writing(operation, None, options, operation.path_for(ids), record)
        return self.pipeline.run(call)

    async def list(self, records: RecordList[R], arguments: Mapping[str, Any]) -> Page[R]:
        return await read_page(self.pipeline, records, arguments)

    async def iterate(self, records: RecordList[R], arguments: Mapping[str, Any]) -> AsyncIterator[R]:
        """Iterate over all items, page by page. Errors have the name of the resource's `iterate`."""
        records = records.named(records.operation.name.replace("list", "iterate"))
        name = records.operation.name
        prepare.refuse_unknown(arguments, prepare.READ_OPTIONS.union(records.names, ("max_items",)), name)
        filters = {name: value for name, value in arguments.items() if name != "max_items"}
        left = arguments.get("max_items")
        if left is not None and not count(left):
            problem = "must be a whole number, 0 or more"
            problem += f", not {rules.kind(left)}" if type(left) is not int else ""
            raise InvalidRequest({"max_items": [problem]}, operation=name)
        if left == 0:
            return
        reader = ListReader(self.pipeline, records, large=False)
        async for page in reader.pages(filters, ListPosition(name, arguments.get("cursor"))):
            for item in page:
                yield item
                left = None if left is None else left - 1
                if left == 0:
                    return

    def reader(self, records: RecordList[R]) -> ListReader[R]:
        """Make a reader of a list, with pages as large as the service allows."""
        return ListReader(self.pipeline, records)


class Resource:
    """A group of operations of one client."""

    def __init__(self, client: ResourceClient) -> None:
        self._client = client
