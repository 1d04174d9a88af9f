"""Valid answers made hostile, by a seeded generator that knows their structure."""

from __future__ import annotations

import copy
import random
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import attrs
from multidict import CIMultiDict, CIMultiDictProxy

from payments_async._http.types import HTTPResponse
from tests.support.bodies import encoded
from tests.support.calls import Operation


@attrs.frozen
class Spoilt:
    """One case: which operation, what it is answered, and how that was made."""

    operation: Operation
    answer: HTTPResponse
    how: tuple[str, ...]


JUNK_PHONE, JUNK_EMAIL = "+2348099887766", "someone@example.org"
STATUSES: tuple[int, ...] = (
    *(200, 201, 202, 204, 206, 299, 301, 302, 304, 307, 308, 400, 401, 403, 404, 408, 409, 409, 410),
    *(418, 422, 422, 425, 428, 429, 429, 451, 499, 500, 501, 502, 503, 504, 511, 599),
)
JUNK: tuple[Any, ...] = (
    *(None, True, 0, -1, 10**30, Decimal("10.1000000000000001"), Decimal("1E+400"), Decimal("-0.0")),
    *("", "x", "٣", "10.10", "NaN", "Infinity", "1_000", "2026-01-02T03:04:05Z", "2026-99-99T99:99:99Z"),
    *("9999-12-31T23:59:59-23:59", "a" * 300, JUNK_PHONE, JUNK_EMAIL, "Idempotency-Key was reused"),
    f"call {JUNK_PHONE} or write to {JUNK_EMAIL}",
    *([], {}, [[]], [None], ["full", 7], [{"code": {}}], {"value": "mtn_bj"}, {"id": "po_1"}),
    *({"value": 10, "currency": "XOF"}, {"value": "1.00000000", "expression": None}),
)
DELAYS = ("1", "0", "-5", "1.5", "٣", "31536000", "999999999999", "1e3", "Infinity", "soon")
MOMENTS = (
    "Wed, 21 Oct 2026 07:28:00 GMT",
    "Wed, 99 Foo 2026 99:99:99 GMT",
    "Mon, 01 Jan 0001 00:00:00 +2359",
)
HEADERS: dict[str, tuple[str, ...]] = {
    "Retry-After": (*DELAYS, *MOMENTS),
    "Date": ("Wed, 21 Oct 2026 07:27:00 GMT", "not a date", ""),
    "X-RateLimit-Limit": ("60000", "-1", "many", "9" * 30),
    "X-RateLimit-Remaining": ("0", "٣"),
    "X-Idempotent-Replayed": ("true", "TRUE ", "false", "1", ""),
    "Content-Type": ("text/html", "application/json; charset=utf-16", ""),
    "Location": ("http://127.0.0.1:9/elsewhere",),
    "X-Request-Id": ("req-1", JUNK_EMAIL),
}
REPLACEMENTS: tuple[bytes, ...] = (
    *(b"", b" ", b"null", b"[]", b"{}", b'"x"', b"7", b"NaN", b"<!doctype html><h1>502</h1>", b"\xff\xfe{"),
    *(b"\xef\xbb\xbf{}", b"[" * 100_000, b'{"data":' * 5000, b"9" * 5000, b'{"data":{"id":"po_1"}}'),
)
LITERALS: tuple[bytes, ...] = (
    *(b"NaN", b"-Infinity", b"1e999999", b"9" * 5000, b"0." + b"1" * 5000, b'"\\ud800"', b"01", b"tru"),
    *(b'"\xed\xa0\x80"', b"1e99999999999999999999", b"[" * 400 + b"]" * 400),
    b'{"a":' * 300 + b"1" + b"}" * 300,
)


def spoil(operation: Operation, rng: random.Random) -> Spoilt:
    """A hostile answer to the operation; now and then a valid one."""
    how: list[str] = []
    tree: Any = copy.deepcopy(operation.body)
    if rng.random() < 0.25:
        tree = {
            "message": rng.choice(JUNK),
            "errors": rng.choice((*JUNK, {"amount": rng.choice(JUNK)})),
            **tree,
        }
    for _ in range(rng.choice((0, 1, 1, 2, 3, 6))):
        how.append(_change(tree, rng))
    raw = encoded(tree)
    if rng.random() < 0.35:
        step = rng.choice((_cut, _flip, _duplicate, _duplicate, _literal, _replace))
        raw, told = step(raw, rng), step.__name__.strip("_")
        how.append(told)
    status = rng.choice(STATUSES) if rng.random() < 0.4 else rng.choice((200, 201))
    headers = {name: rng.choice(HEADERS[name]) for name in HEADERS if rng.random() < 0.15}
    how.append(f"status {status}")
    return Spoilt(operation, HTTPResponse(status, CIMultiDictProxy(CIMultiDict(headers)), raw), tuple(how))


def _places(tree: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) in a JSON value."""
    found: list[tuple[Any, Any]] = []
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
        for key, value in items:
            found.append((node, key))
            waiting.append(value)
    return found


def _change(tree: Any, rng: random.Random) -> str:
    places = _places(tree)
    if not places:
        return "nothing left"
    shallow = places[: max(6, len(places) // 8)]
    node, key = rng.choice(shallow if rng.random() < 0.5 else places)
    step: Callable[..., None] = rng.choice((_drop, _null, _retype, _retype, _retype, _nest, _swap, _add))
    step(node, key, rng, places)
    return f"{step.__name__.strip('_')} {key}"


def _drop(node: Any, key: Any, rng: random.Random, places: Any) -> None:
    del node[key]


def _null(node: Any, key: Any, rng: random.Random, places: Any) -> None:
    node[key] = None


def _retype(node: Any, key: Any, rng: random.Random, places: Any) -> None:
    node[key] = copy.deepcopy(rng.choice(JUNK))


def _nest(node: Any, key: Any, rng: random.Random, places: Any) -> None:
    node[key] = rng.choice(([node[key]], {"value": node[key]}, {key: node[key]}))


def _swap(node: Any, key: Any, rng: random.Random, places: Any) -> None:
    other, name = rng.choice(places)
    node[key] = copy.deepcopy(other[name])


def _add(node: Any, key: Any, rng: random.Random, places: Any) -> None:
    value = copy.deepcopy(rng.choice(JUNK))
    if isinstance(node, dict):
        node[rng.choice(("later", "extra", "response", "_extra", "__class__", "id", "data", ""))] = value
    else:
        node.append(value)


def _cut(raw: bytes, rng: random.Random) -> bytes:
    return raw[: rng.randrange(len(raw) + 1)]


def _flip(raw: bytes, rng: random.Random) -> bytes:
    spoilt = bytearray(raw)
    for _ in range(rng.choice((1, 1, 2, 8))):
        spoilt[rng.randrange(len(spoilt))] = rng.randrange(256)
    return bytes(spoilt)


def _duplicate(raw: bytes, rng: random.Random) -> bytes:
    """Names a member twice, before or after the original."""
    members = list(re.finditer(rb'"(\w+)":', raw))
    if not members:
        return raw
    member = rng.choice(members)
    junk = b'"%s":%s' % (member[1], encoded(rng.choice(JUNK)))
    if rng.random() < 0.5:
        return raw[: member.start()] + junk + b"," + raw[member.start() :]
    return raw[:-1] + b"," + junk + b"}" if raw.endswith(b"}") else raw


def _literal(raw: bytes, rng: random.Random) -> bytes:
    """Puts a literal that no encoder writes in a value's place."""
    values = list(re.finditer(rb'(?<=":)(?:"[^"]*"|[\d.]+|true|false|null)', raw))
    if not values:
        return raw
    value = rng.choice(values)
    return raw[: value.start()] + rng.choice(LITERALS) + raw[value.end() :]


def _replace(raw: bytes, rng: random.Random) -> bytes:
    return rng.choice(REPLACEMENTS)
