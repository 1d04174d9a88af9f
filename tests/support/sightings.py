"""What a sandbox has seen of a batch."""

from __future__ import annotations

from payments_async.sandbox import Sandbox


def posts(sandbox: Sandbox) -> int:
    return sum(request.operation == "payouts.create" for request in sandbox.requests)


def lists(sandbox: Sandbox) -> int:
    return sum(request.operation == "payouts.list" for request in sandbox.requests)


def books(sandbox: Sandbox) -> list[str]:
    return sorted(str(entry.reference) for entry in sandbox.books.payouts())
