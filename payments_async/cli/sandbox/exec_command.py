"""`payments sandbox exec`: one command with a simulated service of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Final

from ...models._masking import clean
from .serve import ServeOptions, environment, inspector_of, open_sandbox

NOT_RUNNABLE: Final = 126
NOT_FOUND: Final = 127
"""What shells answer when a command cannot be run, and when there is none of that name."""


def execute(command: Sequence[str], wishes: ServeOptions) -> int:
    """Run `command` and give its exit code, 128 and the signal's number when a signal ended it.

    Raises ConfigurationError for wishes that cannot be fulfilled.
    """
    with open_sandbox(wishes) as sandbox:
        with suppress(BrokenPipeError):  # nobody reads it; the command runs all the same
            told = f"payments sandbox: {sandbox.base_url}, inspector {inspector_of(sandbox)}"
            print(told, file=sys.stderr, flush=True)
        return _run(command, {**os.environ, **environment(sandbox)})


def _run(command: Sequence[str], variables: Mapping[str, str]) -> int:
    try:
        child = subprocess.Popen(command, env=variables)
    except OSError as failure:
        print(f"payments: cannot run {clean(command[0])}: {failure.strerror}", file=sys.stderr)
        return NOT_FOUND if isinstance(failure, FileNotFoundError) else NOT_RUNNABLE
    with child, _signals_left_to(child):
        code = child.wait()
    return 128 - code if code < 0 else code


@contextmanager
def _signals_left_to(child: subprocess.Popen[bytes]) -> Iterator[None]:
    """Outlive the child: a terminal sends its Ctrl-C to both, and a SIGTERM is passed on."""

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
