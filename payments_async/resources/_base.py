"""What the resources share: preparing, sending, reading, walking pages."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from functools import cache
from typing import Any, TypeVar

import attrs

from .._attrs import maker
from .._polling.waiter import Waiting
from .._request import prepare as _calls
from .._request.auth import SecretKey
from .._request.pages import ListPosition, ListReader, RecordList, read_page
from .._request.pipeline import Pipeline
from .._runtime import Runtime
from .._validation import rules
from ..errors import InvalidRequest
from ..models import Page
from ..params import Params, PreparedRequest
from ..params.operations import Operation, id_problems

R = TypeVar("R")
Sending = Coroutine[Any, Any, R]
"""A call to be awaited at once: no coroutine of our own stands between it and the caller's."""

_NO_OPTIONS: Any = {}
_MAKERS: dict[type, Callable[..., Params]] = {}


def _fields(cls: Any) -> frozenset[str]:
    return frozenset(attrs.fields_dict(cls))


_own: Callable[[Any], frozenset[str]] = cache(_fields)
"""A request's own arguments."""


def _request(cls: type[Params], fields: Mapping[str, Any]) -> Params:
    return (_MAKERS.get(cls) or _MAKERS.setdefault(cls, _maker(cls)))(**fields)


def _maker(cls: type[Any]) -> Callable[..., Params]:
    """Makes a request; a missing field is None until it is reported with the other faults."""
    needed = [field.alias for field in attrs.fields(cls) if field.default is attrs.NOTHING]
    return maker(cls, **dict.fromkeys(needed))


def _refuse_unprepared(operation: Operation[Any], cls: type[Params], arguments: Mapping[str, Any]) -> None:
    """Raise TypeError for an argument that is not of the preparing."""
    method = operation.name.replace("create", "prepare")
    for name in arguments.keys() & _calls.SEND_OPTIONS:
        problem = f"{method}() got an unexpected keyword argument {name!r}: it belongs to the sending"
        raise TypeError(problem)
    _calls.refuse_unknown(arguments, _own(cls) | _calls.PREPARE_OPTIONS, method)


@attrs.frozen(eq=False, repr=False)
class ResourceClient:
    """What a client's resources use of it, and `bulk` and `webhooks` beside the public methods."""

    pipeline: Pipeline
    waiting: Waiting

    @property
    def runtime(self) -> Runtime:
        """Time and chance."""
        return self.pipeline.runtime

    @property
    def base_url(self) -> str:
        """The service's address."""
        return self.pipeline.settings.base_url

    def key(self) -> SecretKey:
        """The secret key of now."""
        return self.pipeline.settings.key()

    def prepare(self, operation: Operation[Any], cls: type[Params], arguments: Any) -> PreparedRequest:
        """A write's bytes and key. Raises InvalidRequest, also for a key last used with another body.

        `arguments` are a call's own. When it fails they are emptied: tracebacks print locals.
        """
        fields, options = arguments, _NO_OPTIONS
        try:
            if not _own(cls).issuperset(arguments):
                _refuse_unprepared(operation, cls, arguments)
                fields, options = _calls.split(arguments, _calls.WRITE_OPTIONS)
            return self.pipeline.prepare(operation, _request(cls, fields), options)
        except BaseException:
            for given in (arguments, fields, options):
                given.clear()
            raise

    def create(self, operation: Operation[R], cls: type[Params], arguments: Any) -> Sending[R]:
        """Prepare at once; send when awaited. `arguments` are treated as by `prepare`."""
        fields, options = arguments, _NO_OPTIONS
        try:
            if not _own(cls).issuperset(arguments):
                _calls.refuse_unknown(arguments, _own(cls) | _calls.WRITE_OPTIONS, operation.name)
                fields, options = _calls.split(arguments, _calls.WRITE_OPTIONS)
            request = _request(cls, fields)
            prepared = self.pipeline.prepare(operation, request, options)
            call = _calls.writing(prepared, options, operation=operation, request=request)
            return self.pipeline.send(call, options) if options else self.pipeline.run(call)
        except BaseException:
            for given in (arguments, fields, options):
                given.clear()
            raise

    def read(
        self, operation: Operation[R], options: Mapping[str, Any], ids: Mapping[str, str] | None = None
    ) -> Sending[R]:
        """One GET of one record."""
        return self.pipeline.run(_calls.reading(operation, options, ids))

    def post(self, operation: Operation[R], options: Mapping[str, Any], ids: Mapping[str, str]) -> Sending[R]:
        """A POST without fields about one record."""
        _calls.refuse_unknown(options, _calls.READ_OPTIONS, operation.name)
        if faults := id_problems(ids):
            raise InvalidRequest(faults, operation=operation.name)
        prepared = self.pipeline.prepare(operation, None, options, operation.path_for(ids))
        record = ids[operation.record] if operation.record else None
        return self.pipeline.run(_calls.writing(prepared, options, operation=operation, record=record))

    async def list(self, records: RecordList[R], arguments: Mapping[str, Any]) -> Page[R]:
        """One page."""
        return await read_page(self.pipeline, records, arguments)

    async def iterate(self, records: RecordList[R], arguments: Mapping[str, Any]) -> AsyncIterator[R]:
        """All items, page after page. Its errors name the resource's `iterate`."""
        records = records.named(records.operation.name.replace("list", "iterate"))
        name = records.operation.name
        _calls.refuse_unknown(arguments, _calls.READ_OPTIONS.union(records.names, ("max_items",)), name)
        filters = {name: value for name, value in arguments.items() if name != "max_items"}
        left = arguments.get("max_items")
        if left is not None and not _calls.count(left):
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
        """Reads a list in pages as large as the service allows."""
        return ListReader(self.pipeline, records)


class Resource:
    """A group of operations of one client."""

    def __init__(self, client: ResourceClient) -> None:
        self._client = client
