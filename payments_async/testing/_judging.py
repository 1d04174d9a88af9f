"""What the plugin's fixtures are made of, and what a test owes at its end."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from payments_async.sandbox import Rule, Sandbox

from ._ledger import RULES
from ._skipping import SkippingRuntime
from ._tenant import SandboxTenant

MARK: Final = "payments_allow"

_CONNECTION: Final = {"connect_timeout": 10.0, "max_connections": 256, "proxy": None, "ssl_context": None}
"""A transport's own options, with the clients' defaults."""


def client_options(
    sandbox: SandboxTenant | Sandbox, runtime: SkippingRuntime, wishes: Mapping[str, Any]
) -> dict[str, Any]:
    """A client's options: those of the sandbox, those the test wishes, and waits that take no time.

    Whoever brings a runtime or a transport has both as they are.
    """
    options: dict[str, Any] = {"api_key": sandbox.api_key, "base_url": sandbox.base_url, **wishes}
    if not {"runtime", "transport"} & set(wishes):
        connection = {name: wishes.get(name, usual) for name, usual in _CONNECTION.items()}
        options["runtime"] = runtime
        options["transport"] = runtime.transport(**connection)
    return options


def service_of(sandbox: SandboxTenant | Sandbox) -> Sandbox:
    """The whole service behind what the test calls its sandbox."""
    return sandbox.service if isinstance(sandbox, SandboxTenant) else sandbox


def check_allowed(names: Iterable[str]) -> frozenset[str]:
    """The rules a test may break; `ValueError` naming what is near for one that there is not."""
    for name in (allowed := frozenset(names)):
        if name not in RULES:
            near = difflib.get_close_matches(name, RULES, n=1, cutoff=0.3) or RULES
            raise ValueError(f"{MARK}: no rule {name!r} (near: {', '.join(near)})")
    return allowed


def verdict(sandbox: SandboxTenant, allowed: Collection[str], *, passed: bool) -> str | None:
    """Why the test fails after all; None when it does not. Unused rules count for one that passed."""
    wrong = [finding for finding in sandbox.findings() if finding.rule not in allowed]
    parts = []
    if wrong:
        told = "\n".join(f"  {finding.rule}: {finding.text}" for finding in wrong)
        parts.append(f"the money ledger does not balance:\n{told}")
        parts.append(f"A test that does so on purpose says @pytest.mark.{MARK}({wrong[0].rule!r}).")
    if passed and (unused := sandbox.unused_rules):
        told = "\n".join(f"  {_described(rule)}" for rule in unused)
        parts.append(f"what was arranged with sandbox.on(...) did not happen, or not as often:\n{told}")
    return "\n".join(parts) or None


def _described(rule: Rule) -> str:
    fields = "".join(f", {name}={value!r}" for name, value in rule.match.items())
    return f"on({rule.operation!r}{fields}): met {rule.used} times"
