"""A guard on money: what a client may send, whoever asks it to. See docs/guard.md.

    guard = Guard(most={"GHS": "5000"}, sums=[("GHS", "50000", "day")], state="guard.sqlite")
    client = AsyncPayments(guard=guard)

It belongs to the service address and secret key in this process: every client of the key is under it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from decimal import Decimal
from itertools import pairwise
from typing import Any, Final, Literal, NamedTuple, Self

import attrs

from ._attrs import ValueMixin
from ._runtime import has_modes
from .errors import ConfigurationError, GuardRefused
from .models._masking import clean
from .params.requests import Money, decimal_if_readable

__all__ = ["Guard", "GuardRefused", "GuardRequest"]

WINDOWS: Final = {"minute": 60, "hour": 3_600, "day": 86_400, "week": 604_800}
"""Seconds of the windows that have a name."""
_LONGEST: Final = 366 * 86_400
_LEAST: Final = Decimal(1)  # the service takes no smaller amount (POST /payouts)
_MOST: Final = Decimal(10) ** 14  # more than can be counted


class GuardRequest(NamedTuple):
    """What `ask` is asked about: an amount above `most`. It has no account data."""

    operation: str
    """`payouts.create`, or `POST /payouts` for one made with `client.request`."""
    amount: Decimal
    """Major units."""
    currency: str
    method: str | None
    country: str | None
    """That of the instrument."""
    reference: str | None
    most: Decimal
    """The guard's figure, major units."""


class Sum(NamedTuple):
    """The most that may be paid out in a currency within any window of so many seconds."""

    currency: str
    most: Decimal
    seconds: int


def _figures(value: Mapping[str, Money]) -> Mapping[str, Decimal]:
    if not isinstance(value, Mapping):
        raise ConfigurationError("guard: most must be a mapping such as {'GHS': '5000'}")
    return {
        _currency(name, "most"): _amount(figure, f"most of {clean(str(name))}")
        for name, figure in value.items()
    }


def _sums(value: Iterable[tuple[str, Money, str | int]]) -> tuple[Sum, ...]:
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise ConfigurationError("guard: sums must be a list such as [('GHS', '50000', 'hour')]")
    return tuple(sorted(_sum(each) for each in value))


def _sum(value: Any) -> Sum:
    if isinstance(value, str) or not isinstance(value, Iterable) or len(found := [*value]) != 3:
        raise ConfigurationError(
            "guard: a sum is (currency, amount, window), such as ('GHS', '50000', 'hour')"
        )
    currency, most, window = found
    seconds = WINDOWS.get(window) if isinstance(window, str) else window
    if type(seconds) is not int or not 1 <= seconds <= _LONGEST:
        names = ", ".join(WINDOWS)
        raise ConfigurationError(
            f"guard: a sum's window is one of {names}, or a whole number of seconds, at most a year"
        )
    return Sum(_currency(currency, "a sum"), _amount(most, f"the sum of {clean(str(currency))}"), seconds)


def _amount(value: Any, what: str) -> Decimal:
    figure = decimal_if_readable(value)
    if not isinstance(figure, Decimal) or not figure.is_finite():
        raise ConfigurationError(
            f"guard: {what} must be decimal text, a whole number or a Decimal, not {type(value).__name__}"
        )
    if figure < _LEAST:
        raise ConfigurationError(f"guard: {what} is below 1, the least amount of a payout: none could pass")
    if figure >= _MOST:
        raise ConfigurationError(f"guard: {what} is more than can be counted")
    return figure


def _currency(value: Any, what: str) -> str:
    if not isinstance(value, str) or not re.fullmatch("[A-Z]{3}", value):
        raise ConfigurationError(f"guard: {what} has a currency that is no three capital letters")
    return value


def _methods(value: Iterable[str] | None) -> frozenset[str] | None:
    return _words(value, "methods")


def _countries(value: Iterable[str] | None) -> frozenset[str] | None:
    found = _words(value, "countries")
    if not all(re.fullmatch("[A-Z]{2}", country) for country in found or ()):
        raise ConfigurationError("guard: countries are of two capital letters, such as GH")
    return found


def _words(value: Iterable[str] | None, what: str) -> frozenset[str] | None:
    if value is None:
        return None
    found = frozenset() if isinstance(value, str) or not isinstance(value, Iterable) else frozenset(value)
    if not found or not all(isinstance(word, str) and word for word in found):
        raise ConfigurationError(f"guard: {what} must be a list of texts, and not empty")
    return found


def _state(value: str | os.PathLike[str] | None) -> str | None:
    if value is None:
        return None
    if isinstance(value, str | os.PathLike) and (path := os.fspath(value)) and isinstance(path, str):
        return os.path.abspath(path)
    raise ConfigurationError("guard: state must be the path of a file")


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Guard(ValueMixin):
    """What may be sent. What no rule allows is refused before it is sent (`GuardRefused`).

    Raises ConfigurationError for rules that cannot be used, or that no payout could pass.
    """

    most: Mapping[str, Decimal] = attrs.field(factory=dict, converter=_figures, hash=False)
    """{currency: the most of one payout, major units}. Other currencies are refused."""
    sums: tuple[Sum, ...] = attrs.field(default=(), converter=_sums)
    """(currency, the most paid out in it, within any window): "minute", "hour", "day", "week" or seconds."""
    methods: frozenset[str] | None = attrs.field(default=None, converter=_methods)
    """The payout methods that may be used; None for all."""
    countries: frozenset[str] | None = attrs.field(default=None, converter=_countries)
    """The countries of instruments, two letters. An instrument that shows none is refused. None for all."""
    decimals: bool = True
    """Refuse amounts with more decimals than ISO 4217 gives their currency, and texts of another meaning."""
    ask: Callable[[GuardRequest], bool | Awaitable[bool]] | None = attrs.field(default=None, repr=False)
    """Asked whether an amount above `most` may be sent. Only True is a yes. It lifts nothing else."""
    state: str | None = attrs.field(default=None, converter=_state)
    """The file with the sums, which all processes of this host share. None for PostgreSQL (`limit_store`)."""
    budgets: Literal["process"] | None = None
    """"process" keeps the sums in this process alone: they begin anew with it."""
    name: str | None = None
    """Keeps the sums when the secret key is rotated; by default they belong to the key."""
    collecting: bool = False
    """Apply `most` and `decimals` to checkouts and payment intents, too."""
    other_currencies: Literal["allow", "refuse"] = "refuse"
    """Whether currencies pass that `most` does not name."""
    other_writes: Literal["allow", "refuse"] = "refuse"
    """Whether `client.request` may write to paths that are no operation of the interface."""

    def __attrs_post_init__(self) -> None:
        _check_words(self)
        _check_sums(self)

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Self:
        """Read a TOML file with the same words, such as `PAYMENTS_GUARD` names. Its paths are relative to it.

        Raises ConfigurationError for a file that is missing, unreadable or writable by others, and for a word
        that is unknown, or a float.
        """
        place = os.fspath(path)
        values = _toml(place)
        known = {field.name for field in attrs.fields(cls)} - {"ask"}
        if unknown := sorted(values.keys() - known):
            raise ConfigurationError(f"guard: {place} has an unknown word: {clean(unknown[0])}")
        if isinstance(state := values.get("state"), str):
            values["state"] = os.path.join(os.path.dirname(os.path.abspath(place)), state)
        try:
            return cls(**values)
        except ConfigurationError as error:
            raise ConfigurationError(f"{place}: {error}") from None

    @property
    def digest(self) -> str:
        """Identifies the rules, whatever `ask` is and wherever the sums are kept."""
        import hashlib
        import json

        rules = {name: value for name, value in self.rules().items() if name not in ("ask", "state")}
        return hashlib.sha256(json.dumps(rules, sort_keys=True).encode()).hexdigest()[:16]

    def rules(self) -> dict[str, Any]:
        """The rules as JSON values, in the words of the file; those that are not set are left out."""
        values = {
            "most": {currency: str(most) for currency, most in sorted(self.most.items())},
            "sums": [(currency, str(most), seconds) for currency, most, seconds in self.sums],
            "methods": sorted(self.methods or ()),
            "countries": sorted(self.countries or ()),
            "decimals": self.decimals,
            "ask": self.ask is not None,
            "collecting": self.collecting,
            "state": self.state,
            "budgets": self.budgets,
            "name": self.name,
        }
        for word in ("other_currencies", "other_writes"):
            values[word] = getattr(self, word) if getattr(self, word) == "allow" else None
        return {word: value for word, value in values.items() if value}


def _check_words(guard: Guard) -> None:
    name, words = guard.name, ("allow", "refuse")
    is_named = name is None or (isinstance(name, str) and name.isprintable() and name != "")
    checks = [
        (guard.other_currencies in words, "other_currencies must be 'allow' or 'refuse'"),
        (guard.other_writes in words, "other_writes must be 'allow' or 'refuse'"),
        (type(guard.decimals) is bool, "decimals must be True or False"),
        (type(guard.collecting) is bool, "collecting must be True or False"),
        (guard.budgets in (None, "process"), "budgets must be 'process', or left out"),
        (not (guard.budgets and guard.state), "give a state or budgets='process', not both"),
        (guard.ask is None or callable(guard.ask), "ask must be a function"),
        (is_named, "name must be printable text"),
        (
            guard.most or guard.other_currencies == "allow",
            "no payout could pass: name its currencies in most, or other_currencies='allow'",
        ),
    ]
    for holds, problem in checks:
        if not holds:
            raise ConfigurationError(f"guard: {problem}")


def _check_sums(guard: Guard) -> None:
    for currency in sorted({each.currency for each in guard.sums}):
        sums = sorted(
            (each for each in guard.sums if each.currency == currency), key=lambda each: each.seconds
        )
        most = guard.most.get(currency)
        if most is None and guard.other_currencies == "refuse":
            raise ConfigurationError(f"guard: there is a sum of {currency}, and most does not name it")
        for shorter, longer in pairwise(sums):
            if shorter.seconds == longer.seconds:
                raise ConfigurationError(
                    f"guard: {currency} has two sums of one window ({window_name(shorter.seconds)})"
                )
            if shorter.most > longer.most:
                raise ConfigurationError(
                    f"guard: the sum of {currency} for {window_name(shorter.seconds)} is above that for "
                    f"{window_name(longer.seconds)}, and could never be reached"
                )
        if most is not None and most > sums[0].most:
            raise ConfigurationError(
                f"guard: most of {currency} ({most}) is above its sum for {window_name(sums[0].seconds)} "
                f"({sums[0].most}): such a payout could never pass"
            )


def window_name(seconds: int) -> str:
    """The name of a window: a word, or its seconds."""
    words = [word for word, length in WINDOWS.items() if length == seconds]
    return f"one {words[0]}" if words else f"{seconds} s"


def _toml(place: str) -> dict[str, Any]:
    import stat
    import tomllib  # most programs have no such file

    try:
        with open(place, "rb") as file:
            found = os.fstat(file.fileno())
            text = file.read()
    except OSError as error:
        raise ConfigurationError(f"guard: {place} cannot be read ({error.strerror})") from None
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and has_modes():
        mode = stat.S_IMODE(found.st_mode)
        raise ConfigurationError(
            f"guard: others than its owner may change {place} (mode {mode:03o}): run chmod go-w on it"
        )
    try:
        return tomllib.loads(text.decode())
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(f"guard: {place} is no TOML file: {clean(str(error))}") from None
