"""What `payments sandbox` is given: a state that stays, a scenario, a speed, a profile."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from payments_async import Instrument, ServerError
from payments_async.cli import main
from payments_async.cli._exit_codes import Exit
from payments_async.cli.sandbox import serve as serving
from payments_async.sandbox import Sandbox
from payments_async.sandbox.http.server import listen
from payments_sync import Payments

COMMAND = [sys.executable, "-m", "payments_async.cli", "sandbox", "--json"]
PAYOUT: dict[str, Any] = {
    "amount": Decimal("10"),
    "currency": "GHS",
    "method": "mobile_money",
    "instrument": Instrument.phone("+233200000001", "GH"),
}
Look = Callable[[dict[str, str], Payments], None]


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., int]:
    """Runs the command in this process, and `look` while it serves; Ctrl-C follows."""

    def run(arguments: Sequence[str], look: Look) -> int:
        def wait() -> None:
            about = json.loads(capsys.readouterr().out)
            with Payments(about["api_key"], base_url=about["base_url"], max_retries=0) as client:
                look(about, client)
            raise KeyboardInterrupt

        monkeypatch.setattr(serving, "wait", wait)
        return main(["sandbox", "--json", *arguments])

    return run


Serve = Callable[..., int]


def test_records_keys_and_idempotency_outlive_the_service_in_its_state_file(
    serve: Serve, tmp_path: Path
) -> None:
    state = ["--state", str(tmp_path / "state.db"), "--speed", "0"]
    seen: list[str] = []

    def pay(about: dict[str, str], client: Payments) -> None:
        seen.append(about["api_key"])
        made = client.payouts.create(**PAYOUT, reference="r-1", idempotency_key="key-00000001")
        seen.append(str(made.id))

    def pay_again(about: dict[str, str], client: Payments) -> None:
        assert about["api_key"] == seen[0]
        found = client.payouts.create(**PAYOUT, reference="r-1", idempotency_key="key-00000001")
        assert found.id == seen[1]
        assert found.response is not None
        assert found.response.replayed

    assert serve(state, pay) == serve(state, pay_again) == Exit.DONE


def test_a_state_that_another_sandbox_has_is_refused_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "state.db"
    holder = Sandbox(state=file)
    assert main(["sandbox", "--state", str(file)]) == Exit.USAGE
    told = capsys.readouterr().err
    assert told.startswith(f"payments: ConfigurationError: --state: {file}: another sandbox has it")
    assert told.endswith(": stop that one, or name another file\n")
    assert told.count("\n") == 1
    holder.stop()


def test_a_taken_port_leaves_the_state_to_the_next_try(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with listen(None) as other:
        monkeypatch.setattr(serving, "DEFAULT_PORT", other.getsockname()[1])
        seen: list[str] = []
        look: Look = lambda about, client: seen.append(about["base_url"])  # noqa: E731 - a name would say no more
        assert serve(["--state", str(tmp_path / "state.db")], look) == Exit.DONE
        assert len(seen) == 1


def test_the_scenario_holds_for_whatever_nothing_else_decides(serve: Serve) -> None:
    def look(about: dict[str, str], client: Payments) -> None:
        payout = client.payouts.create(**PAYOUT, reference="r-1")
        assert payout.failure is not None
        assert payout.failure.code is not None
        assert payout.failure.code.value == "NO_FUNDS"
        kept = client.payouts.create(**PAYOUT, metadata={"sandbox_scenario": "complete immediate"})
        assert kept.is_successful

    assert serve(["--scenario", "fail:NO_FUNDS immediate"], look) == Exit.DONE


def test_a_fault_in_the_scenario_meets_every_request(serve: Serve) -> None:
    def look(about: dict[str, str], client: Payments) -> None:
        for _ in range(3):
            with pytest.raises(ServerError):
                client.payouts.list()

    assert serve(["--scenario", "http:503"], look) == Exit.DONE


def test_an_unknown_word_is_refused_with_what_is_near(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sandbox", "--scenario", "lost_respons"]) == Exit.USAGE
    told = capsys.readouterr().err
    assert told.startswith("payments: ConfigurationError: --scenario: ")
    assert "near: lost_response" in told


def test_a_duration_that_is_none_is_refused_with_its_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sandbox", "--scenario", "slow:2x"]) == Exit.USAGE
    told = "payments: ConfigurationError: --scenario: '2x' is not a duration (5, 5s, 500ms, 2m, 1h)\n"
    assert capsys.readouterr().err == told


def test_speed_makes_sandbox_time_pass(serve: Serve) -> None:
    def look(about: dict[str, str], client: Payments) -> None:
        client.payouts.create(**PAYOUT, reference="r-1")
        found = client.payouts.find("r-1")
        assert found is not None
        assert found.is_final

    assert serve(["--speed", "1000000"], look) == Exit.DONE


@pytest.mark.parametrize("profile", ["strict", "alternate"])
def test_every_profile_can_be_chosen(serve: Serve, profile: str) -> None:
    def look(about: dict[str, str], client: Payments) -> None:
        assert about["profile"] == profile
        assert client.payouts.list().items == ()

    assert serve(["--profile", profile], look) == Exit.DONE


def test_webhooks_may_go_to_the_hosts_that_are_named(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[frozenset[str]] = []
    monkeypatch.setattr(serving, "Sandbox", lambda **options: _noted(made, Sandbox(**options)))
    hosts = ["--allow-webhooks-to", "shop.example", "--allow-webhooks-to", "other.example"]
    assert serve(hosts, lambda about, client: None) == Exit.DONE
    assert set(made) == {
        frozenset({"shop.example", "other.example"})
    }  # anew where a port was taken meanwhile


def _noted(made: list[frozenset[str]], sandbox: Sandbox) -> Sandbox:
    made.append(sandbox._allowed)
    return sandbox


def test_what_is_no_host_is_refused_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sandbox", "--allow-webhooks-to", "https://shop.example/"]) == Exit.USAGE
    told = capsys.readouterr().err
    assert "'https://shop.example/' in allow_webhooks_to is not a bare host" in told
    assert told.count("\n") == 1


def test_the_inspector_is_where_the_command_says(serve: Serve) -> None:
    def look(about: dict[str, str], client: Payments) -> None:
        assert about["inspector"] == about["base_url"].removesuffix("/v1") + "/_sandbox/"
        try:
            with urlopen(about["inspector"]) as page:
                assert page.status == 200
        except HTTPError as refused:
            pytest.fail(f"{about['inspector']}: {refused}")

    assert serve([], look) == Exit.DONE


def test_people_are_told_of_the_inspector_and_of_the_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(serving, "wait", interrupt)
    assert main(["sandbox", "--state", str(tmp_path / "state.db")]) == Exit.DONE
    told = capsys.readouterr().out
    assert re.search(r"^  Inspector  http://127\.0\.0\.1:\d+/_sandbox/$", told, re.MULTILINE)
    assert f"  State      {tmp_path / 'state.db'}\n" in told


@contextmanager
def running(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, str]]]:
    with subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process, json.loads(process.stdout.readline())
        finally:
            process.kill()


@pytest.mark.skipif(os.name != "posix", reason="signals end a process so on POSIX only")
def test_a_command_that_is_ended_by_sigterm_has_kept_everything(tmp_path: Path) -> None:
    state = ("--state", str(tmp_path / "state.db"))
    with (
        running(*state) as (process, about),
        Payments(about["api_key"], base_url=about["base_url"]) as client,
    ):
        client.payouts.create(**PAYOUT, reference="r-1")
        process.send_signal(signal.SIGTERM)
        assert process.wait() == Exit.DONE
    sandbox = Sandbox(state=tmp_path / "state.db")
    assert len(sandbox.books.payouts(reference="r-1")) == 1
    sandbox.stop()


def test_the_key_is_another_one_each_time_unless_a_seed_is_given(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys: list[str] = []
    monkeypatch.setattr(serving, "DEFAULT_PORT", None)

    def look(about: dict[str, str], client: Payments) -> None:
        assert client.payouts.list(page_size=1) is not None
        keys.append(about["api_key"])

    for arguments in ([], [], ["--seed", "7"], ["--seed", "7"], ["--seed", "0"]):
        serve(arguments, look)
    assert len(set(keys)) == 4
    assert keys[2] == keys[3]
    assert keys[4] == Sandbox().api_key
