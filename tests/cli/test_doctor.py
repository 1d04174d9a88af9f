"""`payments doctor`, at a sandbox over TCP and where something is wrong."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from importlib import metadata
from pathlib import Path
from typing import Any

import attrs
import pytest

from payments_async import AsyncPayments, ConfigurationError
from payments_async._cli.doctor import checks, probes
from payments_async._cli.doctor.checks import MAX_CLOCK_SKEW
from payments_async._rate_limit import store_client
from payments_async._runtime import SYSTEM
from payments_async.sandbox import Sandbox, SandboxLimits
from payments_async.sandbox.advisor import advise
from tests.conftest import BASE_URL, KEY
from tests.support.canary import CANARY_KEY, NEEDLE
from tests.support.limit_stores import ADDRESS, MemoryStore, StoreServer
from tests.support.motion import payout_answer, refusal
from tests.support.patience import until
from tests.support.payout_command import Exit, Said, main
from tests.support.rawserver import CERTIFICATE, RawServer
from tests.support.scripted import ScriptedTransport, answer
from tests.support.servers import free_port

ALL = [
    *("versions", "variables", "key", "address", "connection"),
    *("guard", "read", "clock", "limits", "webhooks"),
]
PROBES = ["a3", "a4", "a2", "a1", "a5"]
PHONE = "+233245556677"


@attrs.frozen
class Found(Said):
    @property
    def steps(self) -> list[str]:
        return [line["step"] for line in self.lines]

    @property
    def wrong(self) -> list[str]:
        return [line["step"] for line in self.lines if not line["ok"]]


@attrs.frozen
class Doctor:
    """The command in a shell whose variables lead it to a sandbox."""

    service: Sandbox
    patch: pytest.MonkeyPatch
    capsys: pytest.CaptureFixture[str]

    def __call__(self, *options: str, **variables: str) -> Found:
        """Run it for programs, with these variables from now on. No secret is in what it says."""
        for name, value in variables.items():
            self.patch.setenv(name, value)
        found = Found(main(["doctor", "--json", *options]), *self.capsys.readouterr())
        assert NEEDLE not in found.out
        return found

    def report(self, *options: str) -> str:
        main(["doctor", *options])
        return " ".join(self.capsys.readouterr().out.split())


@pytest.fixture
def doctor(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Doctor]:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    with Sandbox(limits=SandboxLimits.off()) as sandbox:
        monkeypatch.setenv("PAYMENTS_API_KEY", sandbox.api_key)
        monkeypatch.setenv("PAYMENTS_BASE_URL", sandbox.base_url)
        yield Doctor(sandbox, monkeypatch, capsys)


LIVE = "sk_live_CANARY0123456789abcdef"


def test_a_sound_set_up_is_found_sound_and_people_get_the_same_findings(doctor: Doctor) -> None:
    found = doctor()
    assert (found.code, found.wrong, found.steps) == (Exit.DONE, [], ALL)
    assert found.step("versions")["versions"]["aiohttp"] == metadata.version("aiohttp")
    assert {"cli", "sandbox"} <= {*found.step("versions")["extras"]}
    assert found.step("versions")["versions"]["jinja2"] == metadata.version("jinja2")
    assert found.step("versions")["slow"] is None
    assert found.step("key")["environment"] == "sandbox"
    assert found.step("read")["status"] == 200
    assert abs(found.step("clock")["skew"]) <= MAX_CLOCK_SKEW
    assert found.step("limits")["client"]["write"] == 60_000
    assert [found.step("webhooks")[name] for name in ("by_id", "pages")] == [6_000, 100]
    assert [(each.method, each.path) for each in doctor.service.requests] == [
        ("GET", "/v1/payouts?per_page=1")
    ]
    assert main(["doctor"]) == Exit.DONE
    report = doctor.capsys.readouterr().out
    steps = [line for line in report.splitlines()[2:] if not line.startswith(" " * 15)]
    assert [line.split()[1].lower() for line in steps] == ALL
    assert doctor.service.api_key not in report


def test_each_assumption_of_batches_is_tried_with_a_sandbox_key(doctor: Doctor) -> None:
    found = doctor("--probe", "--phone", PHONE)
    assert (found.code, found.wrong, found.steps) == (Exit.DONE, [], [*ALL, *PROBES])
    assert (found.step("a1")["made"], found.step("a1")["refused"]) == (1, 49)
    assert len(doctor.service.books.payouts()) == 4
    assert PHONE not in found.out
    assert advise(doctor.service.entries()) == []


def test_probes_take_no_live_key(doctor: Doctor) -> None:
    doctor.patch.setenv("PAYMENTS_API_KEY", LIVE)
    assert main(["doctor", "--probe"]) == Exit.USAGE
    captured = doctor.capsys.readouterr()
    assert "it takes a sandbox key" in captured.err
    assert captured.out == ""
    assert not doctor.service.requests


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
)
def test_a_wrong_setting_is_named_without_its_value_and_exits_2(
    name: str, value: str, step: str, doctor: Doctor
) -> None:
    found = doctor(**{name: value})
    assert (found.code, found.wrong) == (Exit.USAGE, [step])
    assert found.step(step)["error"] == "ConfigurationError"
    assert not doctor.service.requests


@pytest.mark.parametrize(
    ("path", "shown"), [("/v1", "/v1"), (f"/{NEEDLE}/v1", "/…/v1"), (f"/v1/{NEEDLE}", None)]
)
def test_an_addresss_path_is_not_shown(path: str, shown: str | None, doctor: Doctor) -> None:
    origin = doctor.service.base_url.removesuffix("/v1")
    found = doctor(PAYMENTS_BASE_URL=origin + path)
    assert found.step("address").get("base_url") == (shown and origin + shown)


def test_a_key_that_the_service_refuses_exits_2(doctor: Doctor) -> None:
    found = doctor("--probe", PAYMENTS_API_KEY=CANARY_KEY)
    assert (found.code, found.wrong) == (Exit.USAGE, ["read"])
    assert found.step("read")["error"] == "AuthenticationError"
    assert found.step("clock")["ok"]


def test_a_service_that_is_away_is_named_by_host_and_port(doctor: Doctor) -> None:
    port = free_port()
    found = doctor(PAYMENTS_BASE_URL=f"http://127.0.0.1:{port}/v1")
    assert (found.code, found.wrong) == (Exit.REFUSED, ["connection", "read"])
    assert found.step("connection")["to"] == f"127.0.0.1:{port}"
    assert f"no answer from 127.0.0.1:{port}" in found.step("read")["message"]


def test_a_name_without_an_address_is_a_finding(doctor: Doctor) -> None:
    def unknown(*_: Any, **__: Any) -> Any:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    doctor.patch.setattr(socket, "getaddrinfo", unknown)
    found = doctor(PAYMENTS_BASE_URL="https://api.shop.test/v1")
    assert (found.code, found.wrong) == (Exit.REFUSED, ["connection", "read"])
    assert "none to api.shop.test:443: Name or service not known" in found.step("connection")["problem"]


def test_a_limit_store_that_is_away_is_named_and_no_read_waits_for_it(doctor: Doctor) -> None:
    port = free_port()
    found = doctor("--probe", PAYMENTS_LIMIT_STORE=f"redis://shop:{NEEDLE}@127.0.0.1:{port}/0")
    assert (found.code, found.wrong, found.steps) == (Exit.REFUSED, ["store"], [*ALL[:-4], "store", "read"])
    assert f"redis://127.0.0.1:{port} cannot be reached" in found.step("store")["problem"]
    assert not doctor.service.requests


def test_a_limit_store_that_answers_is_asked_for_nothing_and_a_refusal_exits_2(doctor: Doctor) -> None:
    server = StoreServer(SYSTEM)
    for module in (checks, store_client):
        doctor.patch.setattr(module, "open_store", lambda *_, **__: MemoryStore(server))
    found = doctor(PAYMENTS_LIMIT_STORE=ADDRESS)
    assert (found.code, found.wrong, found.steps) == (Exit.DONE, [], [*ALL[:-4], "store", *ALL[-4:]])
    row, first = server.asked[0]
    assert (first.wanted, row) == (0, server.asked[1][0])
    asyncio.run(until(lambda: server.open == 0))  # its thread closes the connection
    server.fault = ConfigurationError("the limit store redis://127.0.0.1:9 refuses the user or the password")
    found = doctor()
    assert (found.code, found.wrong) == (Exit.USAGE, ["store"])
    assert "refuses the user" in found.step("store")["message"]


GUARD = 'most = {GHS = "5000"}\nmethods = ["mobile_money"]\n'


def guarded(doctor: Doctor, folder: Path, text: str) -> Path:
    """A guard in a file of the folder. Its key is a new one, which it may hold until the process ends."""
    path = folder / "guard.toml"
    path.write_text(GUARD + text)
    path.chmod(0o600)
    doctor.patch.setenv("PAYMENTS_GUARD", str(path))
    doctor.patch.setenv("PAYMENTS_API_KEY", doctor.service.new_key())
    return path


def test_without_a_guard_one_is_recommended_for_a_live_key_alone(doctor: Doctor) -> None:
    found = doctor()
    assert (found.code, found.step("guard")["ok"], found.step("guard")["recommended"]) == (
        Exit.DONE,
        True,
        False,
    )
    found = doctor(PAYMENTS_API_KEY=LIVE)
    assert found.step("guard")["recommended"] is True
    assert found.wrong == ["client"]  # plain http takes no live key
    address = doctor.service.base_url.replace("127.0.0.1", "127.1")
    found = doctor(PAYMENTS_BASE_URL=address, PAYMENTS_SANDBOX_HOSTS="127.1")
    assert {"address", "connection"}.isdisjoint(found.wrong)
    assert "docs/guard.md has a first one" in doctor.report()


def test_a_guard_whose_sums_refuse_is_wrong_until_they_are_begun(doctor: Doctor, tmp_path: Path) -> None:
    path = guarded(doctor, tmp_path, 'sums = [["GHS", "9000", "day"]]\nstate = "guard.sqlite"\n')
    state = tmp_path / "guard.sqlite"
    found = doctor()
    assert (found.code, found.wrong) == (Exit.REFUSED, ["guard"])
    assert (found.step("guard")["state"], state.exists()) == (str(state), False)
    assert "does not exist yet; `payments guard begin` makes it" in found.step("guard")["problem"]
    state.touch(0o600)
    assert "it refuses for another 24 h 16 min" in doctor().step("guard")["problem"]
    assert main(["guard", "begin"]) == Exit.DONE
    doctor.capsys.readouterr()
    guard = doctor().step("guard")
    assert (guard["ok"], guard["problem"], guard["file"], guard["mode"]) == (True, None, str(path), "600")
    assert guard["rules"]["most"] == {"GHS": "5000"}
    assert "methods: mobile_money; decimals: as many as" in doctor.report()


def test_a_guard_that_cannot_be_used_or_whose_sums_are_away_is_a_finding(
    doctor: Doctor, tmp_path: Path
) -> None:
    guarded(doctor, tmp_path, "mots = 1\n")
    found = doctor()
    assert (found.code, found.wrong) == (Exit.USAGE, ["guard", "client"])
    assert "unknown word: mots" in found.step("guard")["message"]
    guarded(doctor, tmp_path, 'sums = [["GHS", "9000", "day"]]\n')
    port = free_port()
    found = doctor(PAYMENTS_LIMIT_STORE=f"postgresql://shop:{NEEDLE}@127.0.0.1:{port}/shop")
    assert (found.code, found.wrong) == (Exit.REFUSED, ["guard", "store"])
    assert f"127.0.0.1:{port}/shop cannot be reached" in found.step("guard")["problem"]


def test_an_untrusted_certificate_is_a_finding_and_a_trusted_one_is_described(doctor: Doctor) -> None:
    with RawServer(tls=True) as server:
        found = doctor(PAYMENTS_BASE_URL=server.url("/v1", scheme="https"))
        assert (found.code, found.wrong) == (Exit.REFUSED, ["tls", "read"])
        assert "certificate" in found.out
        assert doctor(SSL_CERT_FILE=str(CERTIFICATE)).step("tls")["tls"].startswith("TLSv1")


@pytest.mark.parametrize("seconds", [-3600, 3600])
def test_a_clock_that_is_wrong_is_a_finding(seconds: int, doctor: Doctor) -> None:
    doctor.patch.setattr(SYSTEM, "now", lambda: datetime.now(UTC) + timedelta(seconds=seconds))
    found = doctor()
    assert (found.code, found.wrong) == (Exit.REFUSED, ["clock"])
    assert found.step("clock")["skew"] == pytest.approx(seconds, abs=30)


def test_what_makes_a_call_cost_twice_as_much_is_said(
    doctor: Doctor, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "goes through a proxy" in doctor("--proxy", "http://127.0.0.1:9").step("versions")["slow"]
    monkeypatch.setattr(checks, "is_patched", lambda: True)
    assert "as a tracing agent does" in doctor().step("versions")["slow"]
    monkeypatch.setattr(checks, "is_supported", lambda: False)
    assert f"aiohttp {metadata.version('aiohttp')} is another" in doctor().step("versions")["slow"]


def test_a_proxy_is_asked_instead_and_not_named(doctor: Doctor) -> None:
    with RawServer() as proxy:
        address = f"http://shop:{NEEDLE}@127.0.0.1:{proxy.port}"
        found = doctor("--proxy", address)
    assert found.steps == [*ALL[:4], "guard", "read"]
    assert len(proxy.requests) == 1


@pytest.mark.parametrize(
    "proxy",
    [f"shop:{NEEDLE}", f"http://{NEEDLE}:12/34{NEEDLE}@127.0.0.1:3128"],
    ids=["no scheme", "slash in the password"],
)
def test_a_proxy_that_can_be_misread_is_refused_without_repeating_it(proxy: str, doctor: Doctor) -> None:
    found = doctor("--proxy", proxy)
    assert (found.code, found.wrong) == (Exit.USAGE, ["client"])


def test_proxies_of_the_environment_are_said_not_to_be_read(doctor: Doctor) -> None:
    found = doctor(https_proxy=f"http://shop:{NEEDLE}@proxy.test:3128")
    assert (found.code, found.step("variables")["proxies"]) == (Exit.DONE, ["HTTPS_PROXY"])


def made(number: int, **changes: Any) -> Any:
    return payout_answer(id=f"po_{number}", amount={"value": 1, "currency": "GHS"}, reference=None, **changes)


def listed(*payouts: Any) -> Any:
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


def test_a_report_shows_foreign_text_as_escapes(doctor: Doctor) -> None:
    doctor.patch.setenv("PAYMENTS_\x1b[31m", "1")
    for said in (doctor().out, doctor.report()):
        assert "\x1b" not in said
        assert "[31m" in said
