"""The plugin's checks at the end of a test; hides this package's frames in failures."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import pytest

from ..sandbox import Rule, Sandbox
from ..sandbox._common.masking import mask
from ..sandbox._journal import LoggedExchange
from ..sandbox.advisor import Finding
from ..sandbox.advisor._rules import RULES
from ._skipping_clock import SkippingRuntime
from ._tenant import SandboxTenant

MARK: Final = "payments_allow"

_KEPT: Final = "which has ended. The client was kept from that test to this one"
_RECIPE: Final = "give each test a client of its own (docs/testing.md, Programs that keep a client)"

_CONNECTION: Final = {"connect_timeout": 10.0, "max_connections": 256, "proxy": None, "ssl_context": None}
"""A transport's own options, with the clients' defaults."""


def client_options(
    sandbox: SandboxTenant | Sandbox, runtime: SkippingRuntime, given: Mapping[str, Any]
) -> dict[str, Any]:
    """Make a client's options: the sandbox's, the test's own, and waits that take no time.

    A runtime or transport of the test is used unchanged.
    """
    options: dict[str, Any] = {"api_key": sandbox.api_key, "base_url": sandbox.base_url, **given}
    if not {"runtime", "transport"} & set(given):
        connection = {name: given.get(name, usual) for name, usual in _CONNECTION.items()}
        options["runtime"] = runtime
        options["transport"] = runtime.transport(**connection)
    return options


def marker_problem(marks: Sequence[pytest.Mark]) -> str | None:
    """The fault of a test's marker, with the names of all rules; None when it is valid."""
    known = f"the rules are {', '.join(RULES)}"
    names = [each for mark in marks for each in mark.args]
    options = [each for mark in marks for each in mark.kwargs]
    if options or not all(isinstance(name, str) for name in names):
        return f"{MARK} takes names, such as {MARK}('paid_again', 'key_reused'); {known}"
    unknown = ", ".join(sorted({repr(name) for name in names if name not in RULES}))
    return f"{MARK}: {unknown} is no rule; {known}" if unknown else None


def verdict(sandbox: SandboxTenant, allowed: Collection[str], *, passed: bool) -> str | None:
    """The reason to fail a test that passed; None when there is none.

    Unused rules, and payments with the key of an ended test, fail only a test that passed.
    """
    wrong = [finding for finding in sandbox.findings() if finding.rule not in allowed]
    parts = []
    if wrong:
        parts.append(_unbalanced(wrong))
    if passed and (unused := sandbox.unused_rules):
        rules = "\n".join(f"  {_described(rule)}" for rule in unused)
        parts.append(f"what was arranged with sandbox.on(...) did not happen, or not as often:\n{rules}")
    if passed and (stale := _with_an_ended_key(sandbox)):
        named = ", ".join(stale[:5])
        parts.append(f"{named} paid nothing, refused for the key of a test {_KEPT}: {_RECIPE}")
    return "\n".join(parts) or None


def revoked(test: str) -> str:
    """The message for a request with the key of an ended test; `test` is pytest's name of it."""
    return f"The API key is that of the test {test.partition('[')[0]}, {_KEPT}: {_RECIPE}."


def _with_an_ended_key(sandbox: SandboxTenant) -> list[str]:
    """POSTs with the key of an ended test. A program that catches the error would seem to have paid."""
    items = (entry.item for entry in sandbox.service.entries(sandbox._since))
    return [
        item.log.request_id
        for item in items
        if isinstance(item, LoggedExchange)
        and (item.log.method, item.log.status) == ("POST", 401)
        and item.answer is not None
        and _KEPT.encode() in item.answer.body
    ]


def _unbalanced(wrong: Sequence[Finding]) -> str:
    """The broken rules by name, for pytest's summary; then what each request did, and what to do."""
    broken = list(dict.fromkeys(finding.rule for finding in wrong))
    lines = [f"{', '.join(broken)}: the money ledger does not balance"]
    for name in broken:
        lines += [f"  {name}: {finding.text}" for finding in wrong if finding.rule == name]
        lines.append(f"    instead: {RULES[name].fix}")
    named = ", ".join(map(repr, broken))
    return "\n".join([*lines, f"A test that does so on purpose says @pytest.mark.{MARK}({named})."])


def _described(rule: Rule) -> str:
    fields = "".join(f", {name}={mask(value, name)!r}" for name, value in rule.match.items())
    return f"on({rule.operation!r}{fields}): met {rule.used} times"


_OURS: Final = frozenset({"payments_async", "payments_sync"})
_MARK: Final = "__tracebackhide__"
"""The name by which pytest hides a frame, among its local and global variables."""


@contextmanager
def own_frames_hidden() -> Iterator[None]:
    """Context manager: hides this package's frames from pytest tracebacks."""
    modules = [module for name, module in list(sys.modules.items()) if name.partition(".")[0] in _OURS]
    marked = [vars(module) for module in modules if _MARK not in vars(module)]
    for names in marked:
        names[_MARK] = True
    try:
        yield
    finally:
        for names in marked:
            del names[_MARK]
