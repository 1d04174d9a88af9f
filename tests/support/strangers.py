"""Another user of this machine, who asks a server: only root can be one, and tests of others are skipped."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any, Final

import attrs
import pytest

from payments_async._loopback import peers

STRANGER: Final = 12_345
"""A uid that is not this process's."""

needs_root: Final = pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0, reason="only root can ask as another user"
)

_ASK: Final = """
import encodings.idna, http.client, json, os, sys
os.setgroups([])
os.setuid(int(sys.argv[2]))  # only now: another user may not be able to read this interpreter
port, method, path, headers, body = json.loads(sys.argv[1])
line = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
line.request(method, path, body, headers)
answer = line.getresponse()
print(json.dumps([answer.status, dict(answer.getheaders()), answer.read().decode()]))
"""


@attrs.frozen
class Reply:
    status: int
    headers: Mapping[str, str]
    text: str


def ask_as_stranger(
    port: int, path: str, method: str = "GET", headers: Mapping[str, str] | None = None, body: str = ""
) -> Reply:
    """Ask a server of 127.0.0.1 as another user."""
    asked: Any = json.dumps([port, method, path, dict(headers or {}), body])
    command = [sys.executable, "-I", "-S", "-c", _ASK, asked, str(STRANGER)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return Reply(*json.loads(done.stdout))


def nobody_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine does not say which user a connection is from, as every system but Linux."""
    monkeypatch.setattr(peers, "diagnosed", lambda *_: None)
