"""What `payments sandbox` is given: a state that stays, a scenario, a speed, a profile."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit
from urllib.request import urlopen

import pytest

from payments_async import Instrument, PayoutRequest, _loopback
from payments_async.sandbox import Sandbox
from payments_async.sandbox._http import server
from payments_sync import Payments
from payments_sync.bulk import PayoutBatch
from tests.support.payout_command import Exit, main
from tests.support.strangers import ask_as_stranger, needs_root

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

        monkeypatch.setattr("payments_async._cli.sandbox.serve.until_interrupted", wait)
        monkeypatch.setattr("payments_async._cli.sandbox.serve.DEFAULT_PORT", None)  # a free one
        return main(["sandbox", "--json", *arguments])

    return run


Serve = Callable[..., int]


def test_scenario_speed_and_profile_reach_the_service(serve: Serve) -> None:
    def look(about: dict[str, str], client: Payments) -> None:
        answer = client.checkouts.create(amount=50, currency="XCD").response
        assert (about["profile"], answer and answer.status) == ("hostile", 200), "other profiles answer 201"
        client.payouts.create(**PAYOUT, reference="r-1")
        found = client.payouts.find("r-1")
        assert found is not None
        assert found.is_final
        assert found.failure is not None
        assert found.failure.code is not None
        assert found.failure.code.value == "NO_FUNDS"
        assert about["inspector"] == about["base_url"].removesuffix("/v1") + "/_sandbox/"
        with urlopen(about["inspector"]) as page:
            assert page.status == 200

    given = ("--profile", "hostile", "--scenario", "fail:NO_FUNDS after=10s", "--speed", "1000000")
    assert serve(given, look) == Exit.DONE


@needs_root
@pytest.mark.parametrize(("option", "status"), [([], 403), (["--shared"], 200)])
def test_another_user_reaches_it_if_it_is_shared(serve: Serve, option: list[str], status: int) -> None:
    def look(about: dict[str, str], client: Payments) -> None:
        for path in ("/v1/payouts", "/_sandbox/"):
            key = {"Authorization": f"Bearer {about['api_key']}"}
            assert ask_as_stranger(urlsplit(about["base_url"]).port or 0, path, headers=key).status == status

    assert serve(option, look) == Exit.DONE


@pytest.mark.parametrize(
    ("arguments", "start", "end"),
    [
        (["--scenario", "lost_respons"], "--scenario: ", "near: lost_response"),
        (["--scenario", "slow:2x"], "--scenario: '2x' is not a duration", ""),
        (["--ledger", "june.ledger", "--shared"], "--ledger shows whom rows are for, and --shared lets", ""),
        (
            ["--ledger", "june.ledger", "--bind", "0.0.0.0"],
            "--ledger shows whom rows are for, and --bind lets",
            "",
        ),
        (["--ledger", "mysql://host/db"], "BulkError: ", "mysql"),
        (
            ["--allow-webhooks-to", "https://shop.example/"],
            "--allow-webhooks-to: 'https://shop.example/' in allow_webhooks_to is not a bare host",
            "",
        ),
    ],
)
def test_an_option_that_cannot_be_used_is_refused_in_one_line(
    arguments: list[str], start: str, end: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sandbox", *arguments]) == Exit.USAGE
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"payments: {start}")
    assert end in line


def test_a_bound_one_takes_the_key_of_its_environment_and_no_live_one(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(server, "listen", lambda port, host: _loopback.listen(port))
    keys: list[str | None] = []

    def look(about: dict[str, str], client: Payments) -> None:
        assert client.payouts.list(page_size=1) is not None, "None is the key of the environment"
        assert about["inspector"].removesuffix("/_sandbox/") != about["base_url"].removesuffix("/v1")
        keys.append(about["api_key"])

    for given in ("sk_sandbox_made_up_by_us", ""):
        monkeypatch.setenv("PAYMENTS_API_KEY", given)
        assert serve(["--bind", "0.0.0.0"], look) == Exit.DONE
    assert [str(key)[:11] for key in keys] == ["None", "sk_sandbox_"]
    for kind, address, problem in (
        ("live", "0.0.0.0", "takes no live key"),
        ("sandbox", "localhost", "must be an IPv4 address"),
    ):
        monkeypatch.setenv("PAYMENTS_API_KEY", f"sk_{kind}_of_a_shop_1")
        assert main(["sandbox", "--bind", address]) == Exit.USAGE
        told = capsys.readouterr().err
        assert re.match(f"payments: --bind, and PAYMENTS_API_KEY with it: .*{problem}", told)
        assert "of_a_shop" not in told


@pytest.mark.parametrize(
    ("arguments", "key", "is_printed"),
    [
        (["--bind", "0.0.0.0"], "sk_sandbox_made_up_by_us", False),
        (["--bind", "0.0.0.0"], "", True),
        ([], "sk_sandbox_made_up_by_us", True),  # it draws one of its own
    ],
)
def test_a_key_that_was_given_is_not_printed(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    key: str,
    is_printed: bool,
) -> None:
    monkeypatch.setattr(server, "listen", lambda port, host: _loopback.listen(port))
    monkeypatch.setattr("payments_async._cli.sandbox.serve.DEFAULT_PORT", None)
    monkeypatch.setattr("payments_async._cli.sandbox.serve.until_interrupted", lambda: None)
    monkeypatch.setenv("PAYMENTS_API_KEY", key)
    assert main(["sandbox", *arguments]) == Exit.DONE
    told = "".join(capsys.readouterr())
    shown, exported = re.findall(r"API key +(.+)", told), re.findall("export PAYMENTS_API_KEY=(.+)", told)
    assert shown == (exported if is_printed else ["that of PAYMENTS_API_KEY"])
    assert ("sk_sandbox_" in told, "made_up_by_us" in told) == (is_printed, False)


def test_the_inspector_shows_payouts_by_the_keys_of_a_ledger_that_is_loaded_meanwhile(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("payments_async._cli.sandbox.serve._EVERY", 0.01)
    ledger, seen = tmp_path / "june.ledger", list[str]()

    def look(about: dict[str, str], client: Payments) -> None:
        for batch_id, key in (("june", "Ada Lovelace"), ("july", "+233200000009")):
            with PayoutBatch.open(ledger, client, batch_id=batch_id) as batch:
                batch.load([(key, PayoutRequest(**PAYOUT))])
                batch.run()
            while key not in (shown := page_of(f"{about['inspector']}payouts?find={quote(key)}")):
                pass
            seen.append(shown)
        assert "Ada" not in page_of(f"{about['inspector']}api/payouts")

    assert serve(["--ledger", str(ledger)], look) == Exit.DONE
    assert ("Ada" in seen[0], "+233200000009" in seen[1]) == (True, True)


def page_of(address: str) -> str:
    with urlopen(address) as page:
        return str(page.read().decode())


def test_the_key_is_another_one_each_time_unless_a_seed_is_given(serve: Serve) -> None:
    keys: list[str] = []

    def look(about: dict[str, str], client: Payments) -> None:
        assert client.payouts.list(page_size=1) is not None
        keys.append(about["api_key"])

    for arguments in ([], [], ["--seed", "7"], ["--seed", "7"], ["--seed", "0"]):
        serve(arguments, look)
    assert len(set(keys)) == 4
    assert keys[2] == keys[3]
    assert keys[4] == Sandbox().api_key
