"""Starts the simulated service, until Ctrl-C or around one command."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Final

from ..._runtime import SYSTEM
from ...errors import ConfigurationError, PaymentsError
from ...models._masking import clean
from ...sandbox import Sandbox, UnknownWord, VirtualClock
from ...sandbox._sandbox import no_row_key
from ...sandbox._webhooks.address_guard import read_allowed
from ...sandbox.advisor import Finding, advise
from ...sandbox.advisor._rules import READ_BACK_WITHIN, RULES
from .._exit_codes import Exit, until_interrupted
from .._text import print_message, text_width, wrapped
from .serve_options import ServeOptions

DEFAULT_PORT: Final = 7788
_SEED_BYTES: Final = 32
_CASES: Final = 5  # cases of one mistake that are printed
_EVERY: Final = 1.0  # seconds between two readings of a ledger
_FAREWELL: Final = 2.0
NOT_RUNNABLE: Final = 126
NOT_FOUND: Final = 127
"""The exit codes of shells for a command that cannot be run, and for one that does not exist."""


RowKey = Callable[[str], str | None]


@contextmanager
def open_sandbox(options: ServeOptions, port: int | None, row_key: RowKey = no_row_key) -> Iterator[Sandbox]:
    """A serving sandbox, on a free port if `port` is None. ConfigurationError if an option cannot be used."""
    try:
        sandbox = _start(options, port, row_key)
        try:
            yield sandbox
        finally:
            sandbox.stop()
    except UnknownWord as unfit:
        raise ConfigurationError(f"--scenario: {unfit}") from unfit


def environment(sandbox: Sandbox) -> dict[str, str]:
    """The environment variables with the sandbox's address and key (Authentication)."""
    return {"PAYMENTS_BASE_URL": sandbox.base_url, "PAYMENTS_API_KEY": sandbox.api_key}


def _start(options: ServeOptions, port: int | None, row_key: RowKey) -> Sandbox:
    sandbox = _make(options, port, row_key)
    try:
        sandbox.start()
    except OSError as refused:
        reason = str(refused.strerror).partition(" (while")[0]  # Python adds the address
        problem = f"port {port} cannot be used: {reason}; choose another with --port"
        raise ConfigurationError(problem) from refused
    return sandbox


def _make(options: ServeOptions, port: int | None, row_key: RowKey) -> Sandbox:
    try:
        read_allowed(options.allow_webhooks_to)
    except ValueError as no_host:
        raise ConfigurationError(f"--allow-webhooks-to: {no_host}") from no_host
    try:
        return Sandbox(
            profile=options.profile,
            seed=int.from_bytes(SYSTEM.token(_SEED_BYTES)) if options.seed is None else options.seed,
            port=port,
            clock=VirtualClock(speed=options.speed),
            scenario=options.scenario,
            allow_webhooks_to=options.allow_webhooks_to,
            shared=options.shared,
            row_key=row_key,
            bind=options.bind,
            api_key=_given_key(options),
        )
    except UnknownWord:
        raise
    except ValueError as unfit:
        raise ConfigurationError(f"--bind, and PAYMENTS_API_KEY with it: {unfit}") from unfit


def _given_key(options: ServeOptions) -> str | None:
    """The key that programs in other containers were given, too; None where it is to be drawn."""
    return (os.environ.get("PAYMENTS_API_KEY") or None) if options.bind else None


@contextmanager
def row_keys(ledger: str | None, options: ServeOptions) -> Iterator[RowKey]:
    """Finds the key of a reference's row in a ledger, which a thread reads every second.

    Raises ConfigurationError, and LedgerError or BulkError for one that cannot be read.
    """
    if ledger is None:
        yield no_row_key
        return
    if options.shared or options.bind is not None:
        others = "--shared lets every user" if options.shared else "--bind lets a network"
        raise ConfigurationError(f"--ledger shows whom rows are for, and {others} see it")
    from ...bulk._page import RowKeys  # here: without a ledger the command starts without SQLAlchemy
    from ...bulk._texts.ledger_address import LedgerAddress

    keys, is_over = RowKeys(LedgerAddress(ledger)), threading.Event()
    asyncio.run(keys.read())

    def follow() -> None:
        while not is_over.wait(_EVERY):
            with suppress(PaymentsError):  # a database may be away for a while
                asyncio.run(keys.read())

    thread = threading.Thread(target=follow, name="payments-row-keys", daemon=True)
    thread.start()
    try:
        yield keys.of
    finally:
        is_over.set()
        thread.join(_FAREWELL)  # a database that is away would hold up Ctrl-C for a minute


def serve(options: ServeOptions, ledger: str | None, *, as_json: bool) -> Exit:
    """Serve until Ctrl-C or SIGTERM. Raises ConfigurationError when an option cannot be used.

    Of the rows of `ledger` the inspector shows the keys; LedgerError or BulkError if it cannot be read.
    """
    before, port = signal.signal(signal.SIGTERM, signal.default_int_handler), options.port or DEFAULT_PORT
    try:
        with (
            suppress(KeyboardInterrupt),  # SIGTERM is as Ctrl-C
            row_keys(ledger, options) as row_key,
            open_sandbox(options, port, row_key) as sandbox,
        ):
            variables = environment(sandbox)
            if _given_key(options):
                del variables["PAYMENTS_API_KEY"]  # a container's log keeps what is printed
            print_address(variables, sandbox.inspector_url, options, as_json=as_json)
            try:
                until_interrupted()
            finally:
                print_advice(sandbox)
    finally:
        signal.signal(signal.SIGTERM, before)
    return Exit.DONE


def print_address(
    variables: Mapping[str, str], inspector: str, options: ServeOptions, *, as_json: bool
) -> None:
    """Print the service's address, unbuffered, for a program that waits for it on a pipe."""
    base_url, api_key = variables["PAYMENTS_BASE_URL"], variables.get("PAYMENTS_API_KEY")
    if as_json:
        facts = {"base_url": base_url, "api_key": api_key, "inspector": inspector, "profile": options.profile}
        text = json.dumps(facts)
    else:
        exports = "\n".join(f"export {name}={shlex.quote(value)}" for name, value in variables.items())
        place = "on this machine; nothing leaves it"
        if options.bind:
            place = "that other machines reach; its pages need the token in their addresses, its API the key"
        title = wrapped(f"payments sandbox  a simulated service {place}", text_width())
        text = (
            f"{title}\n\n"
            f"  Base URL   {base_url}\n"
            f"  API key    {api_key or 'that of PAYMENTS_API_KEY'}\n"
            f"  Inspector  {inspector}\n"
            "\n"
            f"For programs in another terminal:\n\n{exports}\n\n"
            "Ctrl-C stops it."
        )
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def print_advice(sandbox: Sandbox, *, is_over: bool = False) -> bool:
    """Print what the Advisor has found on stderr. Returns whether it found anything.

    `is_over` says that the program has ended, and reads no webhook's record any more.
    """
    now = sandbox.clock.now() + (READ_BACK_WITHIN if is_over else 0.0)
    found = advise(sandbox.entries(), now)
    unnamed = sum(entry.reference is None for entry in sandbox.books.payouts())
    if not found and not unnamed:
        return False
    groups: dict[str, list[Finding]] = {}
    for finding in found:
        groups.setdefault(RULES[finding.rule].heading, []).append(finding)
    count = f"{len(found) or 'no'} finding{'' if len(found) == 1 else 's'}"
    lines = [f"Advisor: {count}" + (", money at risk" if found else "")]
    for heading, alike in groups.items():
        lines += [f"  {heading}" + (f" ({len(alike)} times)" if len(alike) > 1 else "")]
        lines += [f"    {clean(finding.text)}" for finding in alike[:_CASES]]
        lines += [f"    and {len(alike) - _CASES:,} more like these"] if len(alike) > _CASES else []
        lines += [f"    instead: {alike[0].fix}"]
    lines += [_note(unnamed)] if unnamed else []
    print_message("\n".join(lines), "")
    return bool(found)


def _note(unnamed: int) -> str:
    """The note about payouts without references, which are allowed: no finding."""
    count = f"{unnamed:,} payouts were" if unnamed > 1 else "1 payout was"
    return f"  note: {count} made without a reference, which alone tells a payout from its repeat"


def execute(command: Sequence[str], options: ServeOptions, *, fail_on_advice: bool) -> int:
    """Run `command` and return its exit code, 128 and the signal's number when a signal ended it.

    With `fail_on_advice` a command that ended well ends with 1 when the Advisor found something.
    Raises ConfigurationError when an option cannot be used.
    """
    with open_sandbox(options, options.port) as sandbox:
        print_message(f"{sandbox.base_url}, inspector {sandbox.inspector_url}", "payments sandbox: ")
        code = _run(command, {**os.environ, **environment(sandbox)})
        has_advice = print_advice(sandbox, is_over=True)
    return Exit.REFUSED if code == Exit.DONE and fail_on_advice and has_advice else code


def _run(command: Sequence[str], variables: Mapping[str, str]) -> int:
    try:
        child = subprocess.Popen(command, env=variables)
    except OSError as failure:
        print_message(f"cannot run {clean(command[0])}: {failure.strerror}")
        return NOT_FOUND if isinstance(failure, FileNotFoundError) else NOT_RUNNABLE
    with child, _signals_left_to(child):
        code = child.wait()
    return 128 - code if code < 0 else code


@contextmanager
def _signals_left_to(child: subprocess.Popen[bytes]) -> Iterator[None]:
    """Outlive the child: ignore Ctrl-C, which a terminal sends to both, and pass on SIGTERM."""

    def ignore(number: int, frame: FrameType | None) -> None:
        pass

    def pass_on(number: int, frame: FrameType | None) -> None:
        child.send_signal(number)

    before = {
        signal.SIGINT: signal.signal(signal.SIGINT, ignore),
        signal.SIGTERM: signal.signal(signal.SIGTERM, pass_on),
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
