"""Packages, and modules that only show the names of another."""

from __future__ import annotations

from collections.abc import Sequence

from ._module import Module
from ._words import SOURCE, blocking, header

SHARED = ("arguments", "errors", "events", "models", "params")
"""Public modules without a coroutine: their names are the same objects in both packages."""

_FACE = '''{header}
"""Collect payments and send payouts, blocking.

    with Payments() as client:
        payout = client.payouts.create(amount=Decimal("50"), currency="XOF", method="mtn_bj",
                                       instrument=Instrument.phone("+22990000000", "BJ"),
                                       reference="invoice-7")

The same names as `payments_async`, with `Payments` for `AsyncPayments`, and the same methods and arguments:
change the import, and drop the `await`. Models, params, errors, limits and events are the same objects.
Public names are loaded when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from {source}._version import __version__ as __version__

if TYPE_CHECKING:
{typed}

{modules}
{clients}

_HOME = {{
{homes}}}
_MODULES = frozenset({{{names}}})

__all__ = ["__version__", *_HOME]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f".{{name}}", __name__)
    if name not in _HOME:
        raise AttributeError(f"module {{__name__!r}} has no attribute {{name!r}}")
    value = getattr(import_module(_HOME[name], __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({{*globals(), *__all__, *_MODULES}})
'''

_BULK = '''{header}
"""Many payouts, blocking: each row of a file paid at most once, none lost, every doubtful one shown.

    with Payments() as client, PayoutBatch.open("june.ledger", client) as batch:
        batch.load("june.csv")
        report = batch.run()

The same names as `{source}`, whose `PayoutBatch` does the work on the client's loop; reports,
errors and sources are the same objects. Ctrl-C stops a run in order, a second one cuts it off; either way it
can be run again. `on_progress` is called on the loop's thread. Payouts that are no list are read in the
caller's thread. Public names are loaded when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
{typed}

{twins}

_HOME = {{
{homes}}}

__all__ = [*_HOME]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {{__name__!r}} has no attribute {{name!r}}")
    value = getattr(import_module(_HOME[name], __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({{*globals(), *__all__}})
'''


def face(package: Module) -> str:
    """The text of the package: the source's public names, loaded when used, and the blocking client."""
    homes = package.constant("_HOMES")
    clients = [blocking(name) for name in homes["client"]]
    shared = sorted({name for names in homes.values() for name in names} - set(homes["client"]), key=_order)
    return _FACE.format(
        header=header(package.path),
        source=SOURCE,
        typed=_typed(SOURCE, shared),
        modules="\n".join(f"    from . import {name} as {name}" for name in sorted(SHARED)),
        names=", ".join(f'"{name}"' for name in sorted(SHARED)),
        clients=_typed(".client", clients),
        homes=_homes(".client", clients) + _homes(SOURCE, shared),
    )


def bulk(package: Module, twins: Sequence[str]) -> str:
    """The text of the package of bulk: the names of the modules `twins` are ours, the others the source's."""
    homes = package.constant("_HOMES")
    blocking_homes = {f".{home}": sorted(homes[home], key=_order) for home in twins}
    ours = {name for names in blocking_homes.values() for name in names}
    shared = sorted({name for names in homes.values() for name in names} - ours, key=_order)
    source = package.name
    return _BULK.format(
        header=header(package.path),
        source=source,
        typed=_typed(source, shared),
        twins="\n".join(_typed(home, names) for home, names in blocking_homes.items()),
        homes="".join(_homes(home, names) for home, names in blocking_homes.items()) + _homes(source, shared),
    )


def _typed(home: str, names: Sequence[str]) -> str:
    return "\n".join(f"    from {home} import {name} as {name}" for name in names)


def _homes(home: str, names: Sequence[str]) -> str:
    return "".join(f'    "{name}": "{home}",\n' for name in names)


def same_objects(source: Module) -> str:
    """The text of a module that shows the names of another."""
    lines = [header(source.path), f'"""The same objects as in `{source.name}`."""', ""]
    names = sorted(source.public_names(), key=_order)
    return "\n".join([*lines, *(f"from {source.name} import {each} as {each}" for each in names), ""])


def _order(name: str) -> tuple[int, str]:
    """As sorted imports stand: constants, classes, the rest."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2), name.lower()
