"""`payments doctor`, at a sandbox over TCP and where something is wrong."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from payments_async import AsyncPayments, ConfigurationError
from payments_async._cli import main
from payments_async._cli._exit_codes import Exit
from payments_async._cli.doctor import checks, probes
from payments_async._cli.doctor.checks import MAX_CLOCK_SKEW
from payments_async._rate_limit import store_client
from payments_async._runtime import SYSTEM
from payments_async.sandbox import Sandbox, SandboxLimits
from tests.conftest import BASE_URL, KEY
from tests.support.canary import CANARY_KEY, NEEDLE
from tests.support.limit_stores import ADDRESS, MemoryStore, StoreServer
from tests.support.motion import payout_answer, refusal
from tests.support.patience import until
from tests.support.rawserver import CERTIFICATE, RawServer, Step
from tests.support.scripted import ScriptedTransport, answer

ALL = [
    "versions",
    "extras",
    "variables",
    "key",
    "address",
    "dns",
    "connection",
    "tls",
    "guard",
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
    assert found["extras"]["versions"]["jinja2"] == metadata.version("jinja2")
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
    steps = [line for line in report.splitlines()[2:] if not line.startswith(" " * 15)]
    assert [line.split()[1].lower() for line in steps] == ALL
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
        ("PAYMENTS_BASE_URL", f"https://{NEEDLE}..test/v1", "address"),
        ("PAYMENTS_LIMIT_STORE", f"ftp://shop:{NEEDLE}@db.test/x", "client"),
    ],
    ids=["no key", "white space", "no address", "credentials", "no host", "no store"],
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


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        pytest.param("/v1", "/v1", id="plain"),
        pytest.param(f"/{NEEDLE}/v1", "/…/v1", id="before"),
        pytest.param(f"/v1/{NEEDLE}", None, id="after"),
    ],
)
def test_an_addresss_path_is_not_shown(
    path: str,
    shown: str | None,
    service: Sandbox,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    origin = service.base_url.removesuffix("/v1")
    monkeypatch.setenv("PAYMENTS_BASE_URL", origin + path)
    found = Examined(capsys)
    assert found["address"].get("base_url") == (shown and origin + shown)
    assert NEEDLE not in found.out


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


def test_a_name_that_is_not_resolved_in_time_is_a_finding(
    service: Sandbox, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def hang(*_: Any, **__: Any) -> Any:
        await asyncio.Event().wait()

    monkeypatch.setattr(asyncio.BaseEventLoop, "getaddrinfo", hang)
    monkeypatch.setattr(checks, "CONNECT_TIMEOUT", 0.01)
    found = Examined(capsys)
    assert (found.code, found.wrong) == (Exit.REFUSED, ["dns"])
    assert "no answer in" in found["dns"]["problem"]


def test_each_address_of_a_name_is_tried(
    service: Sandbox, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As a name with an IPv6 address is, where only IPv4 is routed."""

    async def both(loop: Any, host: str, port: int, **_: Any) -> Any:
        return [(socket.AF_INET6, 1, 6, "", ("::1", port, 0, 0)), (socket.AF_INET, 1, 6, "", (host, port))]

    monkeypatch.setattr(asyncio.BaseEventLoop, "getaddrinfo", both)
    found = Examined(capsys)
    assert (found.code, found.wrong) == (Exit.DONE, [])
    assert found["dns"]["addresses"] == ["127.0.0.1", "::1"]


def test_a_limit_store_that_is_away_is_named_and_no_read_waits_for_it(
    service: Sandbox, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    monkeypatch.setenv("PAYMENTS_LIMIT_STORE", f"redis://shop:{NEEDLE}@127.0.0.1:{port}/0")
    found = Examined(capsys, "--probe")
    assert (found.code, found.wrong, found.steps) == (Exit.REFUSED, ["store"], [*ALL[:-3], "store", "read"])
    assert f"redis://127.0.0.1:{port} cannot be reached" in found["store"]["problem"]
    assert NEEDLE not in found.out
    assert not service.requests


def test_a_limit_store_that_refuses_the_password_exits_2(
    service: Sandbox, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    server = StoreServer(SYSTEM)
    server.fault = ConfigurationError("the limit store redis://127.0.0.1:9 refuses the user or the password")
    monkeypatch.setenv("PAYMENTS_LIMIT_STORE", ADDRESS)
    monkeypatch.setattr(checks, "open_store", lambda *_, **__: MemoryStore(server))
    found = Examined(capsys)
    assert (found.code, found.wrong) == (Exit.USAGE, ["store"])
    assert "refuses the user" in found["store"]["message"]


def test_a_limit_store_that_answers_is_asked_for_nothing(
    service: Sandbox, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    server = StoreServer(SYSTEM)
    monkeypatch.setenv("PAYMENTS_LIMIT_STORE", ADDRESS)
    for module in (checks, store_client):
        monkeypatch.setattr(module, "open_store", lambda *_, **__: MemoryStore(server))
    found = Examined(capsys)
    assert (found.code, found.wrong, found.steps) == (Exit.DONE, [], [*ALL[:-3], "store", *ALL[-3:]])
    row, first = server.asked[0]
    assert (first.wanted, row) == (0, server.asked[1][0])
    asyncio.run(until(lambda: server.open == 0))  # its thread closes the connection


GUARD = 'most = {GHS = "5000"}\nmethods = ["mobile_money"]\n'


def guarded(monkeypatch: pytest.MonkeyPatch, folder: Path, text: str) -> Path:
    """A guard in a file of the folder."""
    path = folder / "guard.toml"
    path.write_text(GUARD + text)
    path.chmod(0o600)
    monkeypatch.setenv("PAYMENTS_GUARD", str(path))
    return path


@pytest.fixture
def held(service: Sandbox, monkeypatch: pytest.MonkeyPatch) -> Sandbox:
    """A sandbox with one more key, which a guard may hold until the process ends."""
    monkeypatch.setenv("PAYMENTS_API_KEY", service.new_key())
    return service


def test_without_a_guard_one_is_recommended_for_a_live_key_alone(
    service: Sandbox, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = Examined(capsys)
    assert (found.code, found["guard"]["ok"], found["guard"]["recommended"]) == (Exit.DONE, True, False)
    monkeypatch.setenv("PAYMENTS_API_KEY", "sk_live_CANARY0123456789abcdef")
    found = Examined(capsys)
    assert found["guard"]["recommended"] is True
    assert found.wrong == ["client"]  # plain http takes no live key
    main(["doctor"])
    assert "docs/guard.md has a first one" in " ".join(capsys.readouterr().out.split())


def test_a_guard_is_described_by_its_rules_mode_and_place(
    held: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = guarded(monkeypatch, tmp_path, "")
    found = Examined(capsys)
    assert (found.code, found.wrong) == (Exit.DONE, [])
    guard = found["guard"]
    assert (guard["file"], guard["mode"], guard["state"]) == (str(path), "600", None)
    assert guard["rules"]["most"] == {"GHS": "5000"}
    main(["doctor"])
    assert "methods: mobile_money; decimals: as many as" in " ".join(capsys.readouterr().out.split())


def test_a_guard_whose_sums_refuse_is_wrong_until_they_are_begun(
    held: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    guarded(monkeypatch, tmp_path, 'sums = [["GHS", "9000", "day"]]\nstate = "guard.sqlite"\n')
    state = tmp_path / "guard.sqlite"
    found = Examined(capsys)
    assert (found.code, found.wrong) == (Exit.REFUSED, ["guard"])
    assert (found["guard"]["state"], state.exists()) == (str(state), False)
    assert "does not exist yet; `payments guard begin` makes it" in found["guard"]["problem"]
    state.touch(0o600)
    assert "it refuses for another 24 h 16 min" in Examined(capsys)["guard"]["problem"]
    assert main(["guard", "begin"]) == Exit.DONE
    capsys.readouterr()
    assert (Examined(capsys).wrong, Examined(capsys)["guard"]["problem"]) == ([], None)


def test_a_guard_that_cannot_be_used_or_whose_sums_are_away_is_a_finding(
    held: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    guarded(monkeypatch, tmp_path, "mots = 1\n")
    found = Examined(capsys)
    assert (found.code, found.wrong) == (Exit.USAGE, ["guard", "client"])
    assert "unknown word: mots" in found["guard"]["message"]
    guarded(monkeypatch, tmp_path, 'sums = [["GHS", "9000", "day"]]\n')
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    monkeypatch.setenv("PAYMENTS_LIMIT_STORE", f"postgresql://shop:{NEEDLE}@127.0.0.1:{port}/shop")
    found = Examined(capsys)
    assert (found.code, found.wrong) == (Exit.REFUSED, ["guard", "store"])
    assert f"127.0.0.1:{port}/shop cannot be reached" in found["guard"]["problem"]
    assert NEEDLE not in found.out


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


def test_a_proxy_is_named_without_its_password_and_not_taken_for_the_service(
    service: Sandbox, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    way = ["proxy", "proxy dns", "proxy tcp"]
    with RawServer() as proxy:
        address = f"http://shop:{NEEDLE}@127.0.0.1:{proxy.port}"
        found = Examined(capsys, "--proxy", address)
        assert found.steps == [*ALL[:5], *way, "tls", "guard", "read"]
        assert found["proxy"]["proxy"] == found["proxy tcp"]["to"] == f"127.0.0.1:{proxy.port}"
        assert NEEDLE not in found.out
        monkeypatch.setenv("PAYMENTS_BASE_URL", "https://api.shop.test/v1")
        proxy.scripts["api.shop.test:443"] = [b"HTTP/1.1 502 Bad Gateway\r\n\r\n", Step.CLOSE]
        main(["doctor", "--proxy", address])
        report = capsys.readouterr().out
    assert "plain HTTP" not in report
    assert "TLS        through the proxy" in report


def test_tls_of_a_proxy_is_told_from_that_of_the_service(
    service: Sandbox, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
    with RawServer(tls=True) as proxy:
        found = Examined(capsys, "--proxy", proxy.url("", scheme="https"))
    assert found["proxy tls"]["tls"].startswith("TLSv1")
    assert found["tls"]["tls"] is None


@pytest.mark.parametrize(
    "proxy",
    [f"shop:{NEEDLE}", f"http://{NEEDLE}:12/34{NEEDLE}@127.0.0.1:3128"],
    ids=["no scheme", "slash in the password"],
)
def test_a_proxy_that_can_be_misread_is_refused_without_repeating_it(
    proxy: str, service: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    found = Examined(capsys, "--proxy", proxy)
    assert (found.code, found.wrong) == (Exit.USAGE, ["proxy", "client"])
    assert NEEDLE not in found.out


def test_proxies_of_the_environment_are_said_not_to_be_read(
    service: Sandbox, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("https_proxy", f"http://shop:{NEEDLE}@proxy.test:3128")
    found = Examined(capsys)
    assert (found.code, found["variables"]["proxies"]) == (Exit.DONE, ["HTTPS_PROXY"])
    assert NEEDLE not in found.out


def made(number: int, **changes: Any) -> Any:
    return payout_answer(id=f"po_{number}", amount={"value": 1, "currency": "GHS"}, reference=None, **changes)


def listed(*payouts: Any) -> Any:
    """A page of the list."""
    return answer(200, {"data": [*payouts], "pagination": {"has_more_pages": False}})


async def examine(script: list[Any], *names: str) -> list[checks.Check]:
    """Try one assumption, or all, at a scripted service: the sandbox keeps every promise."""
    payout = probes.ProbePayout("mobile_money", "GHS", PHONE, "GH")
    transport = ScriptedTransport(*script)
    async with AsyncPayments(KEY, base_url=BASE_URL, transport=transport, max_retries=0) as client:
        if names:
            return [await probes.PROBES[name](client, payout, "doctor-1") for name in names]
        return [check async for check in probes.run_probes(client, payout)]


@pytest.mark.parametrize(
    ("name", "script", "good", "words"),
    [
        ("A3", [made(1), made(2)], False, "VIOLATED: the same idempotency key made a second payout"),
        ("A3", [made(1), refusal(409)], None, "batches take longer"),
        ("A4", [made(1), listed()], False, "VIOLATED: the list did not show a payout in 6 readings"),
        ("A4", [made(1), listed({"id": "po_2", "reference": "doctor-1"})], False, "with another id"),
        ("A2", [refusal(422), refusal(409)], False, "VIOLATED: a payout that was refused with 422"),
        ("A2", [payout_answer(amount={"value": 0, "currency": "GHS"}, reference=None)], None, "not tried"),
        ("A1", [*map(made, range(1, 51))], False, "made 50 payout(s): run no batches"),
        ("A1", [made(1), refusal(500)], False, "the others: OutcomeUnknown; try again"),
    ],
)
async def test_an_assumption_that_does_not_hold_is_said(
    name: str, script: list[Any], good: bool | None, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probes, "_PAUSE", 0.0)
    (check,) = await examine(script, name)
    assert (check.name, check.good) == (name, good)
    assert words in check.text


@pytest.mark.parametrize("first", [refusal(422), refusal(500)], ids=["refused", "in doubt"])
async def test_without_a_first_payout_the_other_assumptions_are_not_tried(first: Any) -> None:
    failed, *others = await examine([first])
    assert (failed.name, failed.good, failed.code) == ("A3", False, Exit.REFUSED)
    assert "client.resolve" not in failed.text
    assert [(each.name, each.good, each.text[:9]) for each in others] == [
        (name, None, "not tried") for name in ("A4", "A2", "A1", "A5")
    ]


def test_a_report_shows_foreign_text_as_escapes(
    service: Sandbox, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAYMENTS_\x1b[31m", "1")
    for options in ([], ["--json"]):
        main(["doctor", *options])
        said = capsys.readouterr()
        assert "\x1b" not in said.out + said.err
        assert "[31m" in said.out
