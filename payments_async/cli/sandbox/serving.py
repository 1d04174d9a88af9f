"""`payments sandbox`: serve until told to stop."""

from __future__ import annotations

import json
import shlex
import signal
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress

from .._exit_codes import Exit
from .serve import USUAL_PORT, Wishes, environment, inspector_of, open_sandbox


def serve(wishes: Wishes, *, as_json: bool) -> Exit:
    """Serve until Ctrl-C or SIGTERM; ConfigurationError for wishes that cannot be fulfilled."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C
    try:
        with suppress(KeyboardInterrupt), open_sandbox(wishes, usual=USUAL_PORT) as sandbox:
            tell(environment(sandbox), inspector_of(sandbox), wishes, as_json=as_json)
            wait()
    finally:
        signal.signal(signal.SIGTERM, before)
    return Exit.DONE


def tell(variables: Mapping[str, str], inspector: str, wishes: Wishes, *, as_json: bool) -> None:
    """Print where the service is, at once, for whoever waits for it on a pipe."""
    base_url, api_key = variables["PAYMENTS_BASE_URL"], variables["PAYMENTS_API_KEY"]
    if as_json:
        told = {"base_url": base_url, "api_key": api_key, "inspector": inspector, "profile": wishes.profile}
        text = json.dumps(told)
    else:
        exports = "\n".join(f"export {name}={shlex.quote(value)}" for name, value in variables.items())
        kept = f"  State      {wishes.state}\n" if wishes.state is not None else ""
        text = (
            "payments sandbox  a simulated service on this machine; nothing leaves it\n\n"
            f"  Base URL   {base_url}\n"
            f"  API key    {api_key}\n"
            f"  Inspector  {inspector}\n"
            f"{kept}\n"
            f"For the programs of another terminal:\n\n{exports}\n\n"
            "Ctrl-C stops it."
        )
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def wait() -> None:
    """Sleep until a signal raises KeyboardInterrupt."""
    threading.Event().wait()
