"""JSON that commands read from files, and that they print of records, account data masked."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Mapping
from typing import Any, Final

import attrs

from ..._codec.decode import UnreadableJSON, parse
from ..._runtime import has_modes
from ...models import (
    Customer,
    Failure,
    FailureCode,
    Inspection,
    NextAction,
    PaymentIntent,
    Payout,
    PayoutInstrument,
    SessionRestriction,
)
from ...models._masking import HIDDEN, address, clean, clean_lines, masked
from ...models._record import json_text
from .._exit_codes import CommandEnded, Exit
from .._text import print_message


def _private(*classes: type) -> frozenset[str]:
    """The fields that the repr of these records masks."""
    return frozenset(field.name for each in classes for field in attrs.fields(each) if field.repr is masked)


_ANYWHERE: Final = _private(Customer, Inspection, PaymentIntent, Payout, PayoutInstrument, SessionRestriction)
_INSIDE: Final = {
    "failure": _private(Failure),
    "code": _private(FailureCode),
    "next_action": _private(NextAction),
}
"""{member: names that are private in it only}."""
_KNOWN: Final = {
    "instrument": set(attrs.fields_dict(PayoutInstrument)),
    "customer": set(attrs.fields_dict(Customer)),
}
"""{member: the names of its fields}."""


def without_accounts(value: Any, inside: str = "") -> Any:
    """A JSON value with names, account data and tokens of addresses masked, as in the repr of records."""
    if isinstance(value, Mapping):
        hidden = _ANYWHERE | _INSIDE.get(inside, frozenset())
        if inside in _KNOWN:  # a field that we do not know may be an account
            hidden |= value.keys() - _KNOWN[inside]
        return {name: _shown(name, item, hidden) for name, item in value.items()}
    return [without_accounts(item, inside) for item in value] if isinstance(value, list) else value


def _shown(name: str, value: Any, hidden: frozenset[str]) -> Any:
    if name == "webhook_url" and isinstance(value, str):
        return address(value)
    if name in hidden and value is not None:
        return HIDDEN
    return without_accounts(value, name)


def shown_json(value: Any, *, is_indented: bool) -> str:
    """A JSON value as it is printed, numbers with all their digits."""
    return clean_lines(_indented(value, "") if is_indented else json_text(value))


def _indented(value: Any, margin: str) -> str:
    inner = f"{margin}  "
    if isinstance(value, Mapping) and value:
        lines = (f"{inner}{json_text(name)}: {_indented(item, inner)}" for name, item in value.items())
        return "{\n" + ",\n".join(lines) + f"\n{margin}}}"
    if isinstance(value, list) and value:
        return "[\n" + ",\n".join(f"{inner}{_indented(item, inner)}" for item in value) + f"\n{margin}]"
    return json_text(value)


def read_object(source: str, option: str) -> dict[str, Any]:
    """The JSON object in a file, or on the standard input for `-`; numbers exact.

    Raises CommandEnded, and no message holds anything of the content.
    """
    if source.lstrip().startswith(("{", "[")):  # an account, perhaps: it is not shown
        rule = "takes a file's name, or - for the standard input, as arguments are seen by others"
        raise CommandEnded(f"{option}: {rule}; nothing was sent", Exit.USAGE)
    data = _read(source, option)
    try:
        value = parse(data)
    except UnreadableJSON as error:
        raise CommandEnded(f"{option}: {clean(source)} is not JSON: {error}", Exit.USAGE) from None
    finally:
        del data  # it holds account data, and tracebacks print locals
    if not isinstance(value, dict):
        problem = 'must hold one JSON object, such as {"type": "phone", …}'
        raise CommandEnded(f"{option}: {clean(source)} {problem}", Exit.USAGE)
    return value


def _read(source: str, option: str) -> bytes:
    if source == "-":
        return sys.stdin.buffer.read()
    try:
        with open(source, "rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            if stat.S_ISREG(mode) and mode & 0o044 and has_modes():
                print_message(f"{source}: others on this machine may read it; `chmod 600` keeps it yours")
            return file.read()
    except OSError as error:
        problem = f"{option}: {clean(source)} cannot be read ({error.strerror})"
        raise CommandEnded(problem, Exit.USAGE) from None
