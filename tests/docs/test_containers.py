"""docs/sandbox.md, In a container: its files run as they stand, the sandbox and its client in two network
namespaces that a cable joins. Nothing leaves them."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
import yaml

from tests.docs.pages import section

TEXT: Final = section("docs/sandbox.md", "In a container")
COMPOSE, CI = (yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL))
APP, SANDBOX = COMPOSE["services"]["app"], COMPOSE["services"]["sandbox"]
JOB, SERVICE = CI["test"], CI["test"]["services"][0]
HOSTS: Final = "127.0.0.1 localhost\n10.231.7.1 app\n10.231.7.2 sandbox\n"
PROGRAM: Final = """
from payments_sync import Instrument, Payments

with Payments() as client:
    wallet = Instrument.phone("+233200000001", "GH")
    paid = client.payouts.create(amount=25, currency="GHS", method="mobile_money", instrument=wallet)
    at = "http://10.231.7.2:7788/_sandbox/api/reset"
    client.payouts.create(amount=25, currency="GHS", method="mobile_money", instrument=wallet, webhook_url=at)
    print(paid.status, client.checkouts.create(amount=50, currency="GHS").checkout.url)
"""
LOOK: Final = """
import sys, urllib.error, urllib.request
for page in sys.argv[1:]:
    try:
        read = urllib.request.urlopen(page).read()
        print(200, read.count(b"req_"), read.count(b"the sandbox's own"))
    except urllib.error.HTTPError as refused:
        print(refused.code)
"""
Container = list[str]
"""What a command begins with to run in it."""


def container(*command: str) -> tuple[subprocess.Popen[str], Container]:
    """A network namespace with an /etc/hosts of its own, and the process that holds it."""
    holder = subprocess.Popen(
        [*command, "sh", "-c", "echo; exec sleep infinity"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout is not None
    if not holder.stdout.readline():
        pytest.skip(f"no network namespace can be made here: {holder.communicate()[1].strip()}")
    return holder, ["nsenter", "-t", str(holder.pid), "-U", "--preserve-credentials", "-n", "-m", "-w"]


def run(inside: Container, *command: str, **variables: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [*inside, *command], env={**os.environ, **variables}, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def containers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Container, Container]]:
    """The client's and the sandbox's, in which `pip` finds everything installed."""
    if sys.platform != "linux":
        pytest.skip("network namespaces are Linux's")
    for name, text in (("hosts", HOSTS), ("program.py", PROGRAM), ("pip", "#!/bin/sh\n")):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}:{Path(sys.executable).parent}:{os.environ['PATH']}")
    holder, app = container("unshare", "-rnm")
    other, sandbox = container(*app, "unshare", "-nm")
    cable = f"ip link add name app type veth peer name sandbox netns {other.pid}"
    try:
        for own, (inside, name) in enumerate(((app, "app"), (sandbox, "sandbox")), start=1):
            address = f"ip addr add 10.231.7.{own}/24 dev {name}; ip link set {name} up; ip link set lo up"
            steps = ["mount --bind hosts /etc/hosts", *([cable] if inside is app else []), address]
            code, _, told = run(inside, "sh", "-ec", "; ".join(steps))
            if code:
                pytest.skip(f"network namespaces cannot be joined here: {told.strip()}")
        yield app, sandbox
    finally:
        for process in (other, holder):
            process.kill()
            process.communicate()


WAYS: Final = {
    "compose": (shlex.split(SANDBOX["command"]), shlex.split(APP["command"]), APP["environment"]),
    "ci": (SERVICE["command"], ["sh", "-ec", "\n".join(JOB["script"])], JOB["variables"]),
}


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_a_client_in_one_container_reaches_the_sandbox_in_another_and_with_a_live_key_does_not(
    containers: tuple[Container, Container], way: str
) -> None:
    (app, there), (serve, program, variables) = containers, WAYS[way]
    environment = {**os.environ, "PAYMENTS_API_KEY": variables["PAYMENTS_API_KEY"]}
    with subprocess.Popen([*there, *serve], env=environment, stdout=subprocess.PIPE, text=True) as sandbox:
        assert sandbox.stdout is not None
        try:
            printed = "".join(iter(sandbox.stdout.readline, "Ctrl-C stops it.\n"))
            assert run(there, "sh", "-c", SANDBOX["healthcheck"]["test"])[0] == 0
            code, said, told = run(app, *program, **variables)
            assert (code, told, said[:8]) == (0, "", "pending ")
            inspector, checkout = re.findall(r"Inspector +(\S+)", printed)[0], said.split()[1]
            token, payers = inspector.split("/")[3], checkout.split("/")[3]
            assert checkout.startswith(f"http://127.0.0.1:7788/{payers}/checkout/"), (
                "where the port is published"
            )

            pages = [page.replace("127.0.0.1", "sandbox") for page in (inspector, checkout)]
            pages += [page.replace(f"/{token}", "").replace(f"/{payers}", "") for page in pages]
            pages += [pages[0].replace(token, payers), pages[1].replace(payers, token)]
            hooks = run(app, sys.executable, "-c", LOOK, f"{pages[0]}api/webhooks")[1].split()
            assert (hooks[0], int(hooks[2]) > 0) == ("200", True), "its own address gets no webhook"
            requests = f"{pages[0]}api/requests"
            opened = run(app, sys.executable, "-c", LOOK, *pages, requests)[1].splitlines()
            assert [line[:3] for line in opened] == ["200", "200", "403", "403", "403", "200", "200"]

            live = {**variables, "PAYMENTS_API_KEY": "sk_live_of_a_shop_1"}
            unnamed = {**variables, "PAYMENTS_SANDBOX_HOSTS": ""}
            for wrong, problem in ((live, "a live key goes over https only"), (unnamed, "must be https")):
                code, said, told = run(app, sys.executable, "program.py", **wrong)
                assert (code, said, "of_a_shop" in told) == (1, "", False)
                assert re.search(f"ConfigurationError: .*{problem}", told)
            assert run(app, sys.executable, "-c", LOOK, requests)[1].splitlines() == opened[-1:], (
                "nothing came"
            )
        finally:
            sandbox.terminate()


def test_the_three_files_name_the_same_services_and_no_secret_is_on_a_command_line() -> None:
    (devcontainer,) = (json.loads(block) for block in re.findall(r"```json\n(.*?)```", TEXT, re.DOTALL))
    assert (devcontainer["service"], devcontainer["forwardPorts"]) == ("app", ["sandbox:7788"])
    assert devcontainer["workspaceFolder"] == APP["working_dir"]
    assert (SANDBOX["ports"], SERVICE["alias"]) == (["127.0.0.1:7788:7788"], "sandbox")
    assert APP["environment"] == JOB["variables"]
    assert SANDBOX["environment"].items() <= APP["environment"].items()
    assert not re.search("sk_|token", f"{SANDBOX['command']} {SERVICE['command']}")
