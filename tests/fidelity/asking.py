"""schemathesis, run against a sandbox over loopback."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import attrs

from payments_async.sandbox import OBSERVED, Sandbox, SandboxLimits
from tests.fidelity.served import served

WAIVED = {
    "unsupported_method": "It wants a 405 for a method that an address does not have. The interface's errors "
    "know 404 for what is not there, and no 405: an operation is a method with a path."
}
"""Checks left out, and why."""


def ask(examples: int, seed: int, *options: str) -> subprocess.CompletedProcess[str]:
    """One run of every phase with so many examples for each operation; exit code 0 when nothing was found."""
    profile = attrs.evolve(OBSERVED, magic=False)
    with (
        Sandbox(profile=profile, limits=SandboxLimits.off()) as sandbox,
        tempfile.TemporaryDirectory() as folder,
    ):
        document = Path(folder, "openapi.json")
        document.write_text(json.dumps(served()), encoding="utf-8")
        command = [
            *(sys.executable, "-m", "schemathesis.cli", "run", str(document), "--url", sandbox.base_url),
            *("--header", f"Authorization: Bearer {sandbox.api_key}", "--seed", str(seed)),
            *("--max-examples", str(examples), "--exclude-checks", ",".join(WAIVED), "--no-color"),
            *("--generation-database", "none", "--continue-on-failure", "--request-timeout", "20", *options),
        ]
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
