"""Packages, and modules that only show the names of another."""

from __future__ import annotations

from collections.abc import Sequence

from .module import Module
from .words import SOURCE, blocking, header

SHARED = ("arguments", "errors", "events", "guard", "models", "params")
"""Public modules without a coroutine: their names are the same objects in both packages."""

EXTRAS = ("otel", "sandbox")
"""The same, of an extra: imported by their own names only."""

OPENED = ("batch",)
"""Modules of bulk whose classes are opened, and have twins."""

_FACE = '''{header}
"""{text}
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import {source}
{version}
if TYPE_CHECKING:
{typed}

{ours}

_OURS = {homes}
{constants}
__all__ = {all}  # pyright: ignore[reportUnsupportedDunderAll] # from a table


def __getattr__(name: str) -> Any:
{loading}    if name not in __all__:
        raise AttributeError(f"module {{__name__!r}} has no attribute {{name!r}}")
    value = globals()[name] = getattr(import_module(_OURS.get(name, "{source}"), __name__), name)
    return value


def __dir__() -> list[str]:
    return sorted({{*globals(), *__all__{listed}}})
'''

_TOP = """Collect payments and send payouts, blocking.

    with Payments() as client:
        payout = client.payouts.create(amount=Decimal("50"), currency="XOF", method="mtn_bj",
                                       instrument=Instrument.phone("+22990000000", "BJ"),
                                       reference="invoice-7")

The same names as `payments_async`, with `Payments` for `AsyncPayments`, and the same methods and arguments:
change the import, and drop the `await`. Models, params, errors, limits and events are the same objects.
Public names are loaded when they are first used."""

_BULK = """Many payouts, blocking: each row of a file paid at most once, none lost, every doubtful one shown.

    with Payments() as client, PayoutBatch.open("june.ledger", client) as batch:
        batch.load("june.csv")
        report = batch.run()

The same names as `payments_async.bulk`, whose batches do the work on the client's loop; reports, errors and
sources are the same objects. Ctrl-C stops a run in order, a second one cuts it off; either way it
can be run again. `on_progress` is called on the loop's thread. Payouts from code of yours, such as a
generator, are read in your thread. Public names are loaded when they are first used."""


def face(package: Module) -> str:
    """The text of the package: the source's public names, and the blocking client."""
    return _FACE.format(
        **_names(
            package, ("client",), "".join(f"    from . import {name} as {name}\n" for name in sorted(SHARED))
        ),
        text=_TOP,
        version=f"from {SOURCE}._version import __version__ as __version__\n",
        constants=f'_THEIRS = {{"AsyncPayments"}}\n_MODULES = frozenset({{{_quoted(sorted(SHARED))}}})\n',
        all=f"sorted({{*{SOURCE}.__all__, *_OURS}} - _THEIRS)",
        loading='    if name in _MODULES:\n        return import_module(f".{name}", __name__)\n',
        listed=", *_MODULES",
    )


def bulk(package: Module) -> str:
    """The text of the package of bulk: the source's public names, and the blocking batches."""
    names = _names(package, (*OPENED, "outbox"), "")
    everything = f"{package.name}.__all__"
    loading = f"    if name in _OURS:\n        getattr({package.name}, name)  # says what is not installed\n"
    texts = {"text": _BULK, "all": everything, "loading": loading}
    return _FACE.format(**names, **texts, version="", constants="", listed="")


def _names(package: Module, own: Sequence[str], modules: str) -> dict[str, str]:
    """The template's table of names and modules: those of the modules `own` are the package's own."""
    homes, source = package.constant("_HOMES"), package.name
    ours = {home: [blocking(name) for name in homes[home]] for home in own}
    theirs = {name for home, names in homes.items() if home not in own for name in names}
    table = "\n".join(f'    "{name}": ".{home}",' for home, names in ours.items() for name in names)
    return {
        "header": header(package.path),
        "source": source,
        "typed": _typed(source, sorted(theirs, key=_order)),
        "ours": modules + "\n".join(_typed(f".{home}", names) for home, names in ours.items()),
        "homes": f"{{\n{table}\n}}",
    }


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def _typed(home: str, names: Sequence[str]) -> str:
    return "\n".join(f"    from {home} import {name} as {name}" for name in names)


def same_objects(source: Module) -> str:
    """The text of a module that shows the names of another: with a star where that lists them."""
    lines = [header(source.path), f'"""The same objects as in `{source.name}`."""', ""]
    if source.lists_names():
        return "\n".join([*lines, f"from {source.name} import *  # noqa: F403", ""])
    names = sorted(source.public_names(), key=_order)
    return "\n".join([*lines, *(f"from {source.name} import {each} as {each}" for each in names), ""])


def _order(name: str) -> tuple[int, str]:
    """As sorted imports stand: constants, classes, the rest."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2), name.lower()
