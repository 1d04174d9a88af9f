"""`payments doctor`, at a sandbox over TCP and where something is wrong."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from importlib import metadata
from typing import Any

import pytest

from payments_async import AsyncPayments
from payments_async._runtime import SYSTEM
from payments_async.cli import main
from payments_async.cli._exit_codes import Exit
from payments_async.cli.doctor import probes
from payments_async.cli.doctor.checks import MAX_CLOCK_SKEW
from payments_async.sandbox import Sandbox, SandboxLimits
from tests.conftest import BASE_URL, KEY
from tests.support.canary import CANARY_KEY, NEEDLE
from tests.support.motion import payout_answer, refusal
from tests.support.rawserver import CERTIFICATE, RawServer
from tests.support.scripted import ScriptedTransport

ALL = [
    "versions",
    "extras",
    "variables",
    "key",
    "address",
    "dns",
    "connection",
    "tls",
    "read",
    "clock",
    "limits",
]
PROBES = ["a3", "a4", "a2", "a1", "a5"]
PHONE = "+233245556677"


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[Sandbox]:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    with Sandbox(limits=SandboxLimits.off()) as sandbox:
        monkeypatch.setenv("PAYMENTS_API_KEY", sandbox.api_key)
        monkeypatch.setenv("PAYMENTS_BASE_URL", sandbox.base_url)
        yield sandbox


class Examined:
    """What one run found."""

    def __init__(self, capsys: pytest.CaptureFixture[str], *options: str) -> None:
        self.code = main(["doctor", "--json", *options])
        self.out = capsys.readouterr().out
        self.lines: list[dict[str, Any]] = [json.loads(line) for line in self.out.splitlines()]

    def __getitem__(self, step: str) -> dict[str, Any]:
        (found,) = [line for line in self.lines if line["step"] == step]
        return found

    @property
    def steps(self) -> list[str]:
        return [line["step"] for line in self.lines]

    @property
    def wrong(self) -> list[str]:
        return [line["step"] for line in self.lines if not line["ok"]]


def test_a_sound_set_up_is_found_sound(service: Sandbox, capsys: pytest.CaptureFixture[str]) -> None:
    found = Examined(capsys)
    assert (found.code, found.wrong, found.steps) == (Exit.DONE, [], ALL)
    assert found["versions"]["versions"]["aiohttp"] == metadata.version("aiohttp")
    assert {"cli", "sandbox"} <= {*found["extras"]["installed"]}
    assert found["key"]["environment"] == "sandbox"
    assert found["dns"]["addresses"] == ["127.0.0.1"]
    assert found["read"]["status"] == 200
    assert abs(found["clock"]["skew"]) <= MAX_CLOCK_SKEW
    assert found["limits"]["client"]["write"] == 60_000
    assert [(each.method, each.path) for each in service.requests] == [("GET", "/v1/payouts?per_page=1")]


def test_the_report_for_people_has_the_same_findings(
    service: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["doctor"]) == Exit.DONE
    report = capsys.readouterr().out
    assert [line.split()[1].lower() for line in report.splitlines()[2:]] == ALL
    assert service.api_key not in report


def test_each_assumption_of_batches_is_tried_with_a_sandbox_key(
    service: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    found = Examined(capsys, "--probe", "--phone", PHONE)
    assert (found.code, found.wrong, found.steps) == (Exit.DONE, [], [*ALL, *PROBES])
    assert (found["a1"]["made"], found["a1"]["refused"]) == (1, 49)
    assert len(service.books.payouts()) == 4
    assert PHONE not in found.out


def test_probes_take_no_live_key(
    service: Sandbox, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PAYMENTS_API_KEY", "sk_live_CANARY0123456789abcdef")
    assert main(["doctor", "--probe"]) == Exit.USAGE
    captured = capsys.readouterr()
    assert "it takes a sandbox key" in captured.err
    assert captured.out == ""
    assert not service.requests


@pytest.mark.parametrize(
    ("name", "value", "step"),
    [
        ("PAYMENTS_API_KEY", "", "key"),
        ("PAYMENTS_API_KEY", f" {CANARY_KEY}", "key"),
        ("PAYMENTS_BASE_URL", "", "address"),
        ("PAYMENTS_BASE_URL", f"https://shop:{NEEDLE}@api.test/v1", "address"),
        ("PAYMENTS_LIMIT_STORE", f"ftp://shop:{NEEDLE}@db.test/x", "client"),
    ],
    ids=["no key", "white space", "no address", "credentials", "no store"],
)
def test_a_wrong_setting_is_named_without_its_value_and_exits_2(
    name: str,
    value: str,
    step: str,
    service: Sandbox,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv(name, value)
    found = Examined(capsys)
    assert (found.code, found.wrong) == (Exit.USAGE, [step])
    assert found[step]["error"] == "ConfigurationError"
    assert NEEDLE not in found.out
    assert not service.requests


def test_a_key_that_the_service_refuses_exits_2(
    service: Sandbox, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PAYMENTS_API_KEY", CANARY_KEY)
    found = Examined(capsys, "--probe")
    assert (found.code, found.wrong) == (Exit.USAGE, ["read"])
    assert found["read"]["error"] == "AuthenticationError"
    assert found["clock"]["ok"]
    assert NEEDLE not in found.out


def test_a_service_that_is_away_is_named_by_host_and_port(
    service: Sandbox, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    monkeypatch.setenv("PAYMENTS_BASE_URL", f"http://127.0.0.1:{port}/v1")
    found = Examined(capsys)
    assert (found.code, found.wrong) == (Exit.REFUSED, ["connection", "read"])
    assert found["connection"]["to"] == f"127.0.0.1:{port}"
    assert f"no answer from 127.0.0.1:{port}" in found["read"]["message"]


def test_a_name_without_an_address_is_a_finding(
    service: Sandbox, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def unknown(*_: Any, **__: Any) -> Any:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setenv("PAYMENTS_BASE_URL", "https://api.shop.test/v1")
    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    found = Examined(capsys)
    assert (found.code, found.wrong) == (Exit.REFUSED, ["dns", "read"])
    assert found["dns"]["host"] == "api.shop.test"


def test_an_untrusted_certificate_is_a_finding_and_a_trusted_one_is_described(
    service: Sandbox, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with RawServer(tls=True) as server:
        monkeypatch.setenv("PAYMENTS_BASE_URL", server.url("/v1", scheme="https"))
        found = Examined(capsys)
        assert (found.code, found.wrong) == (Exit.REFUSED, ["tls", "read"])
        assert "certificate" in found.out
        monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
        assert Examined(capsys)["tls"]["tls"].startswith("TLSv1")


@pytest.mark.parametrize("seconds", [-3600, 3600])
def test_a_clock_that_is_wrong_is_a_finding(
    seconds: int, service: Sandbox, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(SYSTEM, "now", lambda: datetime.now(UTC) + timedelta(seconds=seconds))
    found = Examined(capsys)
    assert (found.code, found.wrong) == (Exit.REFUSED, ["clock"])
    assert found["clock"]["skew"] == pytest.approx(seconds, abs=30)


def test_a_proxy_is_named_without_its_password(service: Sandbox, capsys: pytest.CaptureFixture[str]) -> None:
    with RawServer() as proxy:
        found = Examined(capsys, "--proxy", f"http://shop:{NEEDLE}@127.0.0.1:{proxy.port}")
        assert found["proxy"]["proxy"] == f"127.0.0.1:{proxy.port}"
        assert found["connection"]["ok"]
        assert NEEDLE not in found.out
    assert Examined(capsys, "--proxy", f"shop:{NEEDLE}").wrong == ["proxy", "client"]


def test_proxies_of_the_environment_are_said_not_to_be_read(
    service: Sandbox, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("https_proxy", f"http://shop:{NEEDLE}@proxy.test:3128")
    found = Examined(capsys)
    assert (found.code, found["variables"]["proxies"]) == (Exit.DONE, ["HTTPS_PROXY"])
    assert NEEDLE not in found.out


def made(number: int, **changes: Any) -> Any:
    return payout_answer(id=f"po_{number}", amount={"value": 1, "currency": "GHS"}, reference=None, **changes)


@pytest.mark.parametrize(
    ("script", "finding"),
    [
        ([refusal(422)], {"A3": False}),
        ([made(1), made(2)], {"A3": False}),
        ([made(1), refusal(409)], {"A3": None}),
    ],
)
async def test_an_assumption_that_does_not_hold_is_said(
    script: list[Any], finding: dict[str, bool | None]
) -> None:
    """By a scripted service: the sandbox keeps every promise."""
    transport = ScriptedTransport(*script, refusal(500))
    async with AsyncPayments(KEY, base_url=BASE_URL, transport=transport, max_retries=0) as client:
        payout = probes.ProbePayout("mobile_money", "GHS", PHONE, "GH")
        found = {check.name: check.good async for check in probes.run_probes(client, payout)}
    assert finding.items() <= found.items()


async def test_a_second_payout_with_one_reference_is_an_alarm() -> None:
    transport = ScriptedTransport(*(made(number) for number in range(1, 51)))
    async with AsyncPayments(KEY, base_url=BASE_URL, transport=transport, max_retries=0) as client:
        payout = probes.ProbePayout("mobile_money", "GHS", PHONE, "GH")
        check = await probes.PROBES["A1"](client, payout, "doctor-1")
    assert (check.good, check.facts["made"]) == (False, 50)
    assert "run no batches" in check.text


def test_a_report_shows_foreign_text_as_escapes(
    service: Sandbox, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAYMENTS_\x1b[31m", "1")
    for options in ([], ["--json"]):
        main(["doctor", *options])
        said = capsys.readouterr()
        assert "\x1b" not in said.out + said.err
        assert "[31m" in said.out
