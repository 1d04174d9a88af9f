"""The columns of a payout file: checks of the header, comparison of row keys and references. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Final
from unicodedata import normalize

import attrs

from ..._validation.rules import Text, is_unseen, name_problem
from ...params import CustomerInput, Instrument

Place = tuple[str, str]
"""The part of the request a column belongs to ("" for the request itself), and the field there."""

ROW_KEY: Final = "row_key"
REFERENCE: Final = "reference"
AMOUNT: Final = "amount"
GATEWAY_OPTIONS: Final = "gateway_options"
PARTS: Final = ("instrument", "customer", "metadata")
"""Parts of a request: their columns are dotted, `instrument.country`."""

REQUIRED: Final = (AMOUNT, "currency", "method")
"""Columns that every payout file has, beside those of an instrument."""
_UNKNOWN = "is not a column of a payout file"
_MAPS = "; a mapping (--map) says which column another name is"
_INDEX: Final = "begins with a column without a name, as pandas writes its index: write it with index=False"
_LEAVES_OUT: Final = ', or leave that column out with --map "="'
NOT_UTF8: Final = "is in another encoding than UTF-8: save it as UTF-8 (CSV UTF-8)"
SHARED: Final = "; a value that all rows share goes under [constants] in --map-file"
"""Advice, as the end of a fault of a column that is missing or is mapped as a value."""
_METADATA = "metadata."
_VALUE: Final = re.compile(r"[+-]?\d[\d\s.,']*")
"""An amount or a phone, which no name of a column is."""
_LONGEST: Final = 60
_NUMBERED: Final = 7  # digits from which on a name without letters may be an account

_PLACES: Final[Mapping[str, Place]] = {
    **{name: ("", name) for name in (ROW_KEY, REFERENCE, *REQUIRED, "description", "webhook_url")},
    GATEWAY_OPTIONS: ("", GATEWAY_OPTIONS),
    **{f"instrument.{field.name}": ("instrument", field.name) for field in attrs.fields(Instrument)},
    **{f"customer.{field.name}": ("customer", field.name) for field in attrs.fields(CustomerInput)},
}


def place(name: str) -> Place | None:
    """Find the part and field that a column fills; None for a column that a payout file does not have."""
    found = _PLACES.get(name)
    if found is None and name.startswith(_METADATA) and len(name) > len(_METADATA):
        return "metadata", name[len(_METADATA) :]
    return found


def shown(name: str) -> str:
    """Format a name for a message, invisible signs escaped; only the length of what may be an account."""
    if not any(map(str.isalpha, name)) and sum(map(str.isdigit, name)) >= _NUMBERED:
        return f"a name of {len(name)} characters"
    seen = "".join(ascii(letter)[1:-1] if is_unseen(letter) else letter for letter in name[: _LONGEST + 1])
    return f"{seen[:_LONGEST]}…" if len(name) > _LONGEST else seen


def one_form(name: str) -> str:
    """The form in which names of columns are compared: composed (NFC), one blank between words."""
    return " ".join(normalize("NFC", name).split())


def is_known(name: str) -> bool:
    """Return whether a column has this name, in small letters or not."""
    return place(_small(name)) is not None


def is_damaged(text: str) -> bool:
    """Return whether bytes that are not UTF-8 were read as a part of this text."""
    return any("\udc80" <= letter <= "\udcff" for letter in text)


def unknown(name: str) -> str:
    """Explain why a column is refused, and suggest the columns that were probably meant, or its part's."""
    plain = name.strip().lower().replace(" ", "_").replace("-", "_")
    if near := _near(plain):
        return f"{_UNKNOWN}; did you mean {' or '.join(near)}?"
    part = f"{plain.partition('.')[0]}."
    fields = ", ".join(known.removeprefix(part) for known in _PLACES if known.startswith(part))
    return f"{_UNKNOWN}; after {part} comes one of {fields}" if fields else _UNKNOWN


def header_faults(names: Sequence[str], *, can_map: bool = False) -> Iterator[tuple[str | None, str]]:
    """Find every fault of a header. Yields (column, fault). `can_map`: a mapping would be read with it."""
    if any(map(is_damaged, names)):
        yield None, NOT_UTF8
        return
    plain = {name: small for name in names if (small := _small(name)) != name and small not in names}
    if plain:
        pairs = ", ".join(f"{small} for {name}" for name, small in plain.items())
        yield None, f"has columns whose names are in small letters, without spaces around them: write {pairs}"
    names = [plain.get(name, name) for name in names]
    found = {place(name) for name in names}
    if found <= {None}:
        yield None, _no_header(names, _MAPS if can_map else "")
        return
    for name, count in Counter(names).items():
        if not name and count == 1 and not names[0]:
            yield None, _INDEX + (_LEAVES_OUT if can_map else "")
        elif not name:
            yield None, f"has {count} columns without a name" if count > 1 else "has a column without a name"
        elif place(name) is None:
            yield shown(name), unknown(name)
        if name and count > 1:
            yield shown(name), f"is there {count} times"
    for name in REQUIRED:
        if ("", name) not in found:
            yield name, f"is missing{SHARED if can_map else ''}"
    if not any(part == "instrument" for part, _ in filter(None, found)):
        yield "instrument", "is missing: name its columns, such as instrument.phone_number"


def _small(name: str) -> str:
    """The column that a name would be in small letters; the name itself where that is none."""
    small = name.strip().lower()
    return small if place(name) is None and place(small) is not None else name


def _no_header(names: Sequence[str], maps: str) -> str:
    needed = f"it must name the columns, among them {', '.join(REQUIRED)}"
    if not names:
        return f"is missing, as there is nothing to read: {needed}"
    if any(_VALUE.fullmatch(name.strip()) for name in names):
        return f"is missing, and this row holds values: write one above it; {needed}"
    given = ", ".join(map(shown, filter(None, names[:10])))
    return f"is not a header: {needed}, and names {given}{maps}"


def _near(name: str) -> list[str]:
    """Up to three known columns whose name, or its last part, resembles `name`."""
    by_end = {known.rpartition(".")[2]: known for known in reversed([*_PLACES])}
    end = name.rpartition(".")[2]
    close = get_close_matches(name, _PLACES, n=2, cutoff=0.85)
    close += [by_end[match] for match in get_close_matches(end, by_end, n=2, cutoff=0.75)]
    close += [known for known in _PLACES if known.startswith(f"{name}.") or f".{end}_" in known]
    return list(dict.fromkeys(close))[:3]


_MAX_ROW_KEY: Final = 191


def row_key_fault(row_key: object) -> str | None:
    """Validate an operator's row key. Returns its fault, or None."""
    if problem := Text(_MAX_ROW_KEY)(row_key):
        return problem
    assert isinstance(row_key, str)
    return name_problem(row_key) if row_key.strip() else "must not be blank"


def compared(name: str) -> str:
    """Normalize a name for comparison: composed form (NFC), without what `row_key_fault` refuses.

    A faultless name only changes to its composed form; a faulty one to the name that was probably meant. It
    is empty when no visible character is left.
    """
    if name.isascii() and name.isprintable():
        return name.strip()
    spaced = "".join(" " if letter.isspace() else letter for letter in name)
    seen = "".join(letter for letter in spaced if letter == " " or not is_unseen(letter))
    return normalize("NFC", seen.strip())
