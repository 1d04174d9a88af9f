"""What the resources share: preparing, sending, reading, walking pages."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from functools import cache
from typing import Any, TypeVar

import attrs

from .. import _assumptions
from .._attrs import maker
from .._polling.waiter import Waiting
from .._request import prepare as _calls
from .._request.pipeline import Pipeline
from .._validation import rules
from ..errors import InvalidRequest, PaymentsError, UnprocessableError
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
    """Makes a request. A missing field is a fault, told with the others: till then it is None."""
    needed = [field.alias for field in attrs.fields(cls) if field.default is attrs.NOTHING]
    return maker(cls, **dict.fromkeys(needed))


def _refuse_unprepared(operation: Operation[Any], cls: type[Params], arguments: Mapping[str, Any]) -> None:
    """Raise TypeError for an argument that is not of the preparing."""
    method = operation.name.replace("create", "prepare")
    for name in arguments.keys() & _calls.SEND_OPTIONS:
        told = f"{method}() got an unexpected keyword argument {name!r}: it belongs to the sending"
        raise TypeError(told)
    _calls.refuse_unknown(arguments, _own(cls) | _calls.PREPARE_OPTIONS, method)


@attrs.frozen(eq=False, repr=False)
class ResourceClient:
    """A client's way to the service, as its resources use it."""

    pipeline: Pipeline
    waiting: Waiting

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

    async def list(
        self, operation: Operation[R], names: Mapping[str, str], arguments: Mapping[str, Any]
    ) -> Page[R]:
        """One page."""
        _calls.refuse_unknown(arguments, _calls.READ_OPTIONS.union(names), operation.name)
        filters, options = _calls.split(arguments, _calls.READ_OPTIONS)
        query, errors = _calls.filters(names, filters)
        call = _calls.reading(operation, options, query=query, errors=errors)
        page: Page[R] = await self.pipeline.run(call)
        return page

    async def iterate(
        self, operation: Operation[R], names: Mapping[str, str], arguments: Mapping[str, Any]
    ) -> AsyncIterator[R]:
        """All items, page after page. Its errors name the resource's `iterate`."""
        operation = attrs.evolve(operation, name=operation.name.replace("list", "iterate"))
        _calls.refuse_unknown(arguments, _calls.READ_OPTIONS.union(names, ("max_items",)), operation.name)
        filters = {name: value for name, value in arguments.items() if name != "max_items"}
        left = arguments.get("max_items")
        if left is not None and not _calls.count(left):
            told = "must be a whole number, 0 or more"
            told += f", not {rules.kind(left)}" if type(left) is not int else ""
            raise InvalidRequest({"max_items": [told]}, operation=operation.name)
        if left == 0:
            return
        async for page in self.pages(operation, names, filters):
            for item in page:
                yield item
                left = None if left is None else left - 1
                if left == 0:
                    return

    async def pages(
        self,
        operation: Operation[R],
        names: Mapping[str, str],
        arguments: Mapping[str, Any],
        *,
        large: bool = False,
    ) -> AsyncIterator[Page[R]]:
        """All pages, newest first, each read when asked for; a repeated cursor is an error (gap C).

        `large` asks for the largest pages there may be; where those are refused, for the usual ones (gap D).
        """
        size = {"page_size": _assumptions.PAGE_SIZE[-1]} if large else {}
        seen: set[str] = set()
        cursor = arguments.get("cursor")
        while True:
            try:
                page = await self.list(operation, names, {**arguments, **size, "cursor": cursor})
            except UnprocessableError as error:
                if not size or not _calls.refuses_page_size(error):
                    raise
                size = {}
                continue
            yield page
            cursor = page.next_cursor
            if cursor is None:
                return
            if cursor in seen:
                told = f"{operation.name}: the service gave the same cursor twice; the walk was stopped"
                raise PaymentsError(told, operation=operation.name)
            seen.add(cursor)


class Resource:
    """A group of operations of one client."""

    def __init__(self, channel: ResourceClient) -> None:
        self._channel = channel
