"""The command line of the simulation; see the package."""

from __future__ import annotations

import sys

from . import command
from .ablation import ABLATIONS
from .campaign import EVENTS, breaches_without
from .schedule import run_schedule

ONE_MACHINE = command.Kind("", run_schedule, EVENTS, tuple(ABLATIONS), breaches_without)


def main() -> int:
    """0 when the protocol held and the campaign could have told otherwise."""
    name, arguments = sys.argv[1:2], sys.argv[2:]
    if name == ["code"]:
        from .real.campaign import CODE  # the real engine: slower to import than the whole model is to play

        return command.run(CODE, arguments)
    if name == ["fleet"]:
        from .fleet import FLEET

        return command.run(FLEET, arguments)
    if name == ["machines"]:
        from .machines.campaign import MACHINES

        return command.run(MACHINES, arguments)
    return command.run(ONE_MACHINE, sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
