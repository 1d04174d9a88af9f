"""Other column names: which column of a payout file each column of an input is, and what all rows share."""

from __future__ import annotations

import hashlib
import json
import os
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from typing import Any, Final, Self
from unicodedata import normalize

import attrs

from ...errors import ConfigurationError
from ._cells import build
from ._columns import (
    REFERENCE,
    ROW_KEY,
    SHARED,
    header_faults,
    is_damaged,
    is_known,
    one_form,
    place,
    shown,
    unknown,
)

_TABLES: Final = ("columns", "constants")
_SHOWN: Final = frozenset({"amount", "currency", "method", "instrument.type", "instrument.country"})
"""Constants whose value is shown: none of them names a person or an account."""
_ONE_ROW: Final = (ROW_KEY, REFERENCE)
_LOOKED_AT: Final = 20  # rows below a header that is none, among which it may be
_FORM: Final = 'write it like "Phone=instrument.phone_number"; nothing after the = leaves the column out'


def _by_name(pairs: Iterable[tuple[str, str]]) -> Mapping[str, str]:
    """{name in the form in which names are compared: target}. Raises ConfigurationError for two of a name."""
    found: dict[str, str] = {}
    for name, target in pairs:
        if found.setdefault(one_form(name), target) != target:
            raise ConfigurationError(f"the mapping: {shown(name)} is mapped twice")
    return found


def _columns(given: Mapping[str, str]) -> Mapping[str, str]:
    return _by_name(given.items())


def _copied(constants: Mapping[str, str]) -> Mapping[str, str]:
    return dict(constants)


@attrs.frozen(kw_only=True, repr=False)
class ColumnMapping:
    """Names the columns of an input that has names of its own, and gives values that all its rows share.

        ColumnMapping(columns={"Phone": "instrument.phone_number", "Note": ""}, constants={"currency": "GHS"})

    Raises ConfigurationError for a target that is no column of a payout file, for one filled twice, and for a
    constant that no row may have.
    """

    columns: Mapping[str, str] = attrs.field(factory=dict, converter=_columns)
    """{column of the input: column of a payout file, or "" to leave it out}."""
    constants: Mapping[str, str] = attrs.field(factory=dict, converter=_copied)
    """{column of a payout file: its text in every row}."""

    def __attrs_post_init__(self) -> None:
        if problem := next(self._problems(), None):
            raise ConfigurationError(f"the mapping: {problem}")

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Self:
        """Read a TOML file with the tables `[columns]` and `[constants]`. Raises ConfigurationError."""
        name = os.fspath(path)
        try:
            tables = tomllib.loads(Path(name).read_text(encoding="utf-8-sig"))
            return cls(**{table: _texts(table, content) for table, content in tables.items()})
        except OSError as error:
            problem = f"cannot be read ({error.strerror})"
        except ConfigurationError as error:
            problem = str(error)
        except (ValueError, RecursionError) as error:
            problem = f"cannot be read as TOML ({str(error)[:200]})"
        raise ConfigurationError(f"{name}: {problem}")

    @classmethod
    def from_options(cls, texts: Iterable[str] | None, path: str | os.PathLike[str] | None) -> Self:
        """Read columns given as `Phone=instrument.phone_number`, and a file. Raises ConfigurationError."""
        found = cls() if path is None else cls.from_file(path)
        pairs = [*found.columns.items()]
        for text in texts or ():
            name, sign, target = text.rpartition("=")
            if not sign or (target and not name):
                raise ConfigurationError(f"the mapping: {shown(text)} maps nothing: {_FORM}")
            pairs.append((name, target))
        return attrs.evolve(found, columns=_by_name(pairs))

    @property
    def digest(self) -> str:
        """Identifies the mapping: hexadecimal digits."""
        text = json.dumps([dict(self.columns), dict(self.constants)], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def __str__(self) -> str:
        columns = (f"{shown(name)} is {target or 'left out'}" for name, target in self.columns.items())
        shared = (
            f"{name} = {value}" if name in _SHOWN else f"{name} is the same in all rows"
            for name, value in self.constants.items()
        )
        return ", ".join((*columns, *shared))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self}>"  # a constant may be an account

    def __bool__(self) -> bool:
        return bool(self.columns or self.constants)

    def apply(
        self, header: Sequence[str], below: Iterable[tuple[int, Sequence[str]]], hint: str = ""
    ) -> MappedHeader:
        """Map a header: the columns under our names, and all faults.

        `below`: the rows below it, each with its number, one of which may be the header instead. `hint`: what
        is wrong if none of its columns is known.
        """
        theirs = [one_form(name) for name in header]
        names = self._renamed(header)
        kept = [target for name, target in zip(theirs, names, strict=True) if self.columns.get(name) != ""]
        both = [name for name in self.constants if name in kept]
        others = [name for name in self.constants if name not in both]
        faults = list(header_faults([*kept, *others], can_map=True))
        faults += [(name, "is a column of the input and a constant of the mapping") for name in both]
        for name in self.columns:
            if name and name not in theirs:
                near = ", ".join(shown(each) for each in get_close_matches(name, theirs, n=1))
                meant = f"; did you mean {near}?" if near else ""
                faults.append((shown(name), f"is mapped, and is no column of the input{meant}"))
        if faults and not any(is_known(name) or is_damaged(name) for name in names):
            rows = islice(below, _LOOKED_AT)
            if line := next((line for line, row in rows if any(map(is_known, self._renamed(row)))), None):
                hint = f"is not the header, which is row {line}: --header-row {line} (header_row={line})"
            faults = [(None, hint)] if hint else faults
        columns = (*filter(None, names), *self.constants)
        return MappedHeader(names, columns, tuple(self.constants.values()), tuple(faults))

    def _renamed(self, header: Sequence[str]) -> tuple[str, ...]:
        return tuple(self.columns.get(one_form(name), normalize("NFC", name)) for name in header)

    def _problems(self) -> Iterator[str]:
        for name, target in self.columns.items():
            if target and place(target) is None:
                shared = SHARED if place(name) and name not in _ONE_ROW else ""
                yield f"{shown(name)}: {shown(target)} {unknown(target)}{shared}"
        targets = [target for target in self.columns.values() if target]
        for target in targets:
            if targets.count(target) > 1:
                yield f"two columns are {target}"
            if target in self.constants:
                yield f"{target} is a column and a constant"
        for name, value in self.constants.items():
            if place(name) is None:
                yield f"{shown(name)} {unknown(name)}"
            if name in _ONE_ROW:
                yield f"{name} names one row, and cannot be the same in all"
            if not isinstance(value, str) or not value:
                yield f"{name} needs a text that is not empty"
        _, faults = build(self.constants)
        yield from (f"constant {name}: {faults[name]}" for name in self.constants if name in faults)


@attrs.frozen
class MappedHeader:
    """The columns of an input under our names."""

    names: tuple[str, ...]  # the name of each column; "" of one that is left out
    columns: tuple[str, ...]  # the names of those that are read, and of the constants
    constants: tuple[str, ...]  # their values
    faults: tuple[tuple[str | None, str], ...]  # (column, what is wrong)

    def cells(self, cells: Sequence[str]) -> list[str]:
        """The cells of a row for `columns`."""
        return [*(cell for name, cell in zip(self.names, cells, strict=True) if name), *self.constants]


def _texts(table: str, content: Any) -> dict[str, str]:
    if table not in _TABLES:
        raise ConfigurationError(f"{table!r} is unknown; a mapping has [columns] and [constants]")
    if not isinstance(content, dict):
        raise ConfigurationError(f"{table!r} is a table: write [{table}] above its lines")
    found = dict(_lines(content))
    for name, value in found.items():
        if not isinstance(value, str):  # a number may have lost zeros or a plus
            raise ConfigurationError(f'{shown(name)} needs a text: write it in quotation marks, "like this"')
    return found


def _lines(table: Mapping[str, Any], outer: str = "") -> Iterator[tuple[str, Any]]:
    """Each name and value: `a.b = 1`, which TOML takes for a table in the table, is `"a.b" = 1`."""
    for name, value in table.items():
        if isinstance(value, dict) and value:
            yield from _lines(value, f"{outer}{name}.")
        else:
            yield f"{outer}{name}", value
