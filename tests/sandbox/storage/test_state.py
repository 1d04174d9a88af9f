"""A state file: what it keeps, when it is written, and which files are refused."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import os
import pickle
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import AsyncGenerator, Callable
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import pytest

from payments_async.sandbox import Sandbox, SandboxLimits, StateError, VirtualClock
from payments_async.sandbox._checkout.router import answer_stream
from payments_async.sandbox._common.clock import EPOCH
from payments_async.sandbox._common.scenario_words import ACTION_TYPES, HookWord
from payments_async.sandbox._common.values import Request, Stream
from payments_async.sandbox._records import records
from payments_async.sandbox._storage import file as _state
from payments_async.sandbox._storage import rows
from payments_async.sandbox._webhooks import Webhook, WebhookTry
from tests.sandbox.raw_requests import BANK, Api

HOOK = "http://shop.test:9/hook"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "state.db"


def opened(file: Path, **options: Any) -> Sandbox:
    return Sandbox(state=file, **{"clock": VirtualClock.frozen(), **options})


def api_of(sandbox: Sandbox) -> Api:
    return Api(sandbox, sandbox.api_key)


def test_keys_records_answers_customers_and_counts_are_kept(file: Path) -> None:
    first = opened(file, seed=7)
    revoked = first.new_key()
    first.revoke_key(revoked, "for a reason")
    inactive, fenced = first.new_key("inactive"), first.new_key(allowlist=["10.0.0.0/8", "fd00::/8"])
    body = {"reference": "r-1", "customer": {"email": "payer@shop.test"}, "idempotency_key": "key-00000001"}
    made = api_of(first).payout(**body)
    first.stop()

    second = opened(file)
    assert second.api_key == first.api_key
    assert second.books.payouts() == first.books.payouts()
    again = api_of(second).payout(**body)
    assert (again.answer.body, again.replayed) == (made.answer.body, True)
    other = api_of(second).payout(customer=body["customer"]).data
    assert other["customer"]["id"] == made.data["customer"]["id"]
    assert other["id"] != made.data["id"]
    assert api_of(second).payout(reference="r-1").status == 409
    refused = Api(second, revoked).get("/payouts")
    assert (refused.status, refused.json["message"]) == (401, "for a reason")
    assert [Api(second, key).get("/payouts").status for key in (inactive, fenced)] == [401, 403]
    assert second.requests[0].request_id == "req_00000002"
    second.stop()


def test_a_script_of_faults_continues(file: Path) -> None:
    statuses = []
    for _ in range(2):
        sandbox = opened(file)
        statuses += [api_of(sandbox).get("/payouts", scenario="http:503*3").status for _ in range(2)]
        sandbox.stop()
    assert statuses == [503, 503, 503, 200]


def test_records_and_webhooks_under_way_continue(file: Path) -> None:
    first = opened(file)
    api_of(first).payout(webhook_url=HOOK)
    session_id = api_of(first).checkout().data["checkout"]["id"]
    first.pay(session_id, outcome="action:collect_otp")
    first.advance(1)
    first.stop()

    second = opened(file)
    assert second.clock.now() == EPOCH + 1
    assert [webhook.event for webhook in second.webhooks] == ["payout.created"]
    assert [change.after for change in second.advance(4) if change.kind == "payout"] == [
        "processing",
        "completed",
    ]
    assert second.pay(session_id).status == "completed"
    assert [webhook.event for webhook in second.webhooks] == ["payout.created", "payout.completed"]
    second.stop()


def test_time_continues_from_the_later_of_file_and_clock(file: Path) -> None:
    for clock, now in ((100, 100), (0, 100), (500, 500)):
        sandbox = opened(file, clock=VirtualClock.frozen(EPOCH + clock))
        assert sandbox.clock.now() == EPOCH + now
        sandbox.stop()


def test_profile_limits_and_rules_are_the_new_process_s_and_counts_begin_afresh(file: Path) -> None:
    first = opened(file, limits=SandboxLimits(writes=1))
    first.on("payouts.*").respond("http:503")
    assert [api_of(first).payout().status for _ in range(2)] == [503, 429]
    first.stop()
    second = opened(file, profile="hostile", limits=SandboxLimits(writes=2, window="sliding"))
    assert [api_of(second).payout().status for _ in range(3)] == [200, 200, 429]
    assert second.rules == []
    second.stop()


def test_it_is_written_by_save_and_only_when_something_happened(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[int] = []
    monkeypatch.setattr(_state.StateFile, "save", lambda self, rows: written.append(len(rows)))
    sandbox = opened(file)
    for action in (lambda: None, lambda: None, sandbox.reset, api_of(sandbox).payout):
        action()
        sandbox.save()
    sandbox.advance(1)
    sandbox.stop()
    assert len(written) == 4, "after the first key, the reset, the payout and the advance"


def test_reading_writes_nothing_unless_something_falls_due(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As an inspector's tab does twice a second, and a payer's page."""
    clock = VirtualClock.frozen()
    sandbox = opened(file, clock=clock, scenario="after=10s")
    page = api_of(sandbox).checkout().data["checkout"]["url"].removeprefix(sandbox.origin)
    api_of(sandbox).payout()
    sandbox.save()
    written: list[int] = []
    monkeypatch.setattr(_state.StateFile, "save", lambda self, rows: written.append(len(rows)))

    def look() -> None:
        paying = answer_stream(sandbox, Request("GET", f"{page}/events", "", {}, b"", "127.0.0.1"))
        assert isinstance(paying, Stream)
        asyncio.run(beginning(paying, 2))
        pages = ("", "payouts", "payments", "webhooks")
        for path in (*pages, "api/payouts", "api/requests", "api/rules", "api/webhooks"):
            assert sandbox.handle("GET", f"/_sandbox/{path}").status == 200
        assert sandbox._saver is not None
        sandbox._saver.save()

    look()
    assert not written
    clock.advance(11.0)
    look()
    assert len(written) == 1
    assert [each.status for each in sandbox.books.payouts()] == ["completed"]
    sandbox.stop()


async def beginning(stream: Stream, count: int) -> None:
    """Read so many chunks of a stream, and leave it."""
    chunks = cast("AsyncGenerator[bytes, None]", stream.chunks)
    for _ in range(count):
        await anext(chunks)
    await chunks.aclose()


def _watched(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    written, save = threading.Event(), _state.StateFile.save

    def noted(self: _state.StateFile, rows: list[rows.StateRow]) -> None:
        save(self, rows)
        written.set()

    monkeypatch.setattr(_state.StateFile, "save", noted)
    return written


def test_a_full_disk_is_logged_and_the_state_is_written_later(
    file: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(_state, "EVERY", 0.001)
    refused: list[int] = []
    save = _state.StateFile.save

    def full(self: _state.StateFile, rows: list[rows.StateRow]) -> None:
        if len(refused) < 2:
            refused.append(len(rows))
            raise StateError("the disk is full")
        save(self, rows)

    monkeypatch.setattr(_state.StateFile, "save", full)
    written = _watched(monkeypatch)
    with caplog.at_level(logging.WARNING, "payments.sandbox"), opened(file) as sandbox:
        api_key = sandbox.api_key
        assert written.wait(300)
    assert caplog.messages == ["the sandbox's state is not kept for now: the disk is full"] * 2
    again = opened(file, seed=9)
    assert again.api_key == api_key
    again.stop()


def test_what_cannot_be_written_at_the_end_is_an_error(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sandbox = opened(file)
    sandbox._saver._file._file.close()  # type: ignore[union-attr] # as a disk that is gone
    with pytest.raises(StateError, match="cannot be written"):
        sandbox.stop()


def test_only_one_sandbox_has_a_state(file: Path) -> None:
    first = opened(file)
    with pytest.raises(StateError, match="another sandbox has it"):
        opened(file)
    first.stop()
    first.stop()
    opened(file).stop()


def lock_of(file: Path, process: int) -> str:
    """How Linux tells of a lock."""
    about = file.stat()
    place = f"{os.major(about.st_dev):02x}:{os.minor(about.st_dev):02x}:{about.st_ino}"
    return f"1: POSIX  ADVISORY  WRITE {process} {place} 1073741824 1073742335\n"


@pytest.mark.skipif(os.name != "posix", reason="devices have numbers on POSIX")
@pytest.mark.parametrize(
    ("locks", "message"),
    [
        (lambda file: lock_of(file, 4_711), r"another sandbox has it \(process 4711\): stop that one"),
        (lambda file: "1: FLOCK  ADVISORY  WRITE 1 00:01:1 0 EOF\n\n", "another sandbox has it: stop"),
        (lambda file: lock_of(file, -1), "another sandbox has it: stop that one, or name another"),
        (lambda file: None, "another sandbox has it: stop that one"),
    ],
    ids=("theirs", "another file's", "of a process elsewhere", "a system that tells nothing"),
)
def test_the_process_that_has_a_state_is_named_where_the_system_shows_it(
    file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    locks: Callable[[Path], str | None],
    message: str,
) -> None:
    monkeypatch.setattr(_state, "LOCKS", tmp_path / "locks")
    first = opened(file)
    if (text := locks(file)) is not None:
        (tmp_path / "locks").write_text(text)
    with pytest.raises(StateError, match=message):
        opened(file)
    first.stop()


def test_a_sandbox_that_left_its_state_serves_no_more(file: Path) -> None:
    with opened(file) as sandbox:
        pass
    with pytest.raises(RuntimeError, match="make another Sandbox"):
        sandbox.start()


def test_without_a_state_there_is_nothing_to_save() -> None:
    with pytest.raises(RuntimeError, match="no state file"):
        Sandbox().save()


@pytest.mark.skipif(os.name != "posix", reason="POSIX permissions")
def test_only_its_owner_may_read_it(file: Path) -> None:
    opened(file).stop()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.skipif(os.name != "posix", reason="POSIX permissions")
def test_only_its_owner_may_read_the_target_of_a_link(tmp_path: Path, file: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(file)  # which is not there yet
    opened(link).stop()
    assert link.is_symlink()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_other_files_are_left_as_they_are(tmp_path: Path, file: Path) -> None:
    text = tmp_path / "text"
    text.write_text("no database " * 100)
    text.chmod(0o600)
    with pytest.raises(StateError, match="no state of a sandbox"):
        opened(text)
    assert text.read_text() == "no database " * 100
    with sqlite3.connect(file) as other:
        other.execute("CREATE TABLE theirs (id)")
    other.close()
    file.chmod(0o600)
    with pytest.raises(StateError, match="another program's database"):
        opened(file)
    with pytest.raises(StateError, match="cannot be opened"):
        opened(tmp_path / "nowhere" / "state.db")


def change(file: Path, statement: str, *values: object) -> None:
    """Change a state's file from outside."""
    with sqlite3.connect(file) as state:
        state.execute(statement, values)
    state.close()


def test_the_state_of_another_version_is_refused(file: Path) -> None:
    opened(file).stop()
    change(file, f"PRAGMA user_version = {rows.VERSION + 1}")
    for _ in range(2):  # the first try has left it
        with pytest.raises(StateError, match="another version of payments-sdk: delete it"):
            opened(file)


def test_a_change_of_the_form_is_a_new_version() -> None:
    """Change the digest together with `VERSION`: a state of the old form would be misread otherwise."""
    stored = [rows.StoredReply, rows.StoredTenant, rows.StoredTimer, rows.StoredState]
    kept = [*vars(records).values(), HookWord, Webhook, WebhookTry]
    values = [kind for kind in kept if isinstance(kind, type) and hasattr(kind, "__match_args__")]
    fields = [(kind.__name__, list(kind.__annotations__.items())) for kind in (*stored, *values)]
    digest = hashlib.sha256(json.dumps(fields).encode()).hexdigest()[:16]
    assert (rows.VERSION, digest) == (5, "58e7e3a6a0a08538")


class Harmful:
    def __reduce__(self) -> Any:
        return os.mkdir, ("harm",)


@pytest.mark.parametrize(
    "body", [b"", b"no state", 10**12, None, b"{}", b"[" * 100_000, pickle.dumps(Harmful())]
)
def test_what_is_no_state_is_refused_and_runs_nothing(
    file: Path, body: object, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    opened(file).stop()
    change(file, "UPDATE state SET body = ?", body)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StateError, match="cannot be read"):
        opened(file)
    assert not (tmp_path / "harm").exists()


@pytest.fixture
def kept(file: Path) -> Path:
    """A state with a payout, a paid checkout with a refund, an attempt under way, webhooks and timers."""
    sandbox = opened(file)
    api_of(sandbox).payout(webhook_url=HOOK, reference="r-1", idempotency_key="key-00000001")
    for outcome in ("complete", "action:collect_otp after=20s"):
        made = api_of(sandbox).checkout(amount=5, webhook_url=HOOK).data
        sandbox.pay(made["checkout"]["id"], outcome=outcome)
    sandbox.refund(sandbox.books.payments()[0].id, 1, pending=True)
    sandbox.stop()
    return file


HUGE = b"1E+999999999"
"""Twelve bytes that would be printed as a gigabyte."""


@pytest.mark.parametrize(
    ("kind", "before", "after"),
    [
        ("payout", b'"amount":50', b'"amount":' + HUGE),
        ("payout", b'"amount":50', b'"amount":1E-999999999'),
        ("payout", b'"amount":50', b'"amount":"NaN"'),
        ("payout", b'"amount":50', b'"amount":-10'),
        ("payout", b'"status":"pending"', b'"status":"paid"'),
        ("payout", b'"hooks":[]', b'"hooks":[{"kind":"duplicate","count":100000000}]'),
        ("payment", b'"amount":5', b'"amount":' + HUGE),
        ("payment", b'"amount":1,"pending"', b'"amount":1E-999999999,"pending"'),
        ("payment", b'"status":"pending"', b'"status":"processing"'),
        ("payment", b'"session":{', b'"more":1,"session":{'),
        ("payment", b'"plan":null', b'"plan":{"outcome":{"kind":"action"},"timing":{"kind":"manual"}}'),
        ("payment", b'"status":"action_required"', b'"status":"paid"'),
        ("payment", b'"action":"collect_otp"', b'"action":"dance"'),
        ("payment", b'"count":0', b'"count":1000000000'),
        ("payment", b'"failovers_left":0', b'"failovers_left":1000000000'),
        ("payout", b'"body":"', b'"body":"e30=","was":"'),  # {}
        ("payout", b'"body":"', b'"body":"W10=","was":"'),  # []
        ("payout", b'"key":"', b'"key":"another'),
        ("reply", b'"owner":"', b'"owner":"another'),
        ("reply", b'"answer":"po_', b'"answer":"po_another'),
        ("state", b'"serial":2', b'"serial":1'),
        ("state", b'"serial":5', b'"serial":4'),
        ("state", b'"key":"sk_sandbox_', b'"key":"\\u001b[2J'),
        ("state", b'"api_key":"sk_sandbox_', b'"api_key":"sk_sandbox_other'),
        ("state", b'"busy":{}', b'"busy":{"po_1":[]}'),
        ("state", b'"held":{}', b'"held":{"po_1":["wh_9"]}'),
        ("state", b'"now":', b'"now":"noon","served":'),
        ("state", b'"chance":[', b'"chance":[-1,'),
        ("state", b'"status":"active"', b'"status":"odd"'),
        ("state", b'"allowlist":null', b'"allowlist":["everywhere"]'),
        ("state", b'"step":"payout.end"', b'"step":"os.system"'),
        ("state", b'"step":"payout.end"', b'"step":"attempt.end"'),
        ("state", b'"record":"po_', b'"record":"po_another'),
        ("webhook", b'"state":"waiting"', b'"state":"sending"'),
    ],
)
def test_a_state_that_no_sandbox_has_written_is_refused(
    kept: Path, kind: str, before: bytes, after: bytes
) -> None:
    """It would fail, or hang, when it is shown or when its time comes."""
    with sqlite3.connect(kept) as state:
        found = state.execute("SELECT id, body FROM state WHERE kind = ?", (kind,)).fetchall()
        number, body = next((number, body) for number, body in found if before in body)
        state.execute("UPDATE state SET body = ? WHERE id = ?", (body.replace(before, after, 1), number))
    state.close()
    with pytest.raises(StateError, match="cannot be read"):
        opened(kept)


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO state (kind, body) VALUES ('os.system', '{}')",
        "INSERT INTO state (kind, body) SELECT kind, body FROM state WHERE kind = 'state'",
        "INSERT INTO state (kind, body) SELECT kind, body FROM state WHERE kind = 'payout'",
        "INSERT INTO state (kind, body) SELECT kind, body FROM state WHERE kind = 'payment'",
        "DELETE FROM state WHERE kind = 'state'",
        "DELETE FROM state WHERE kind = 'payment'",
    ],
)
def test_a_state_with_rows_too_many_or_too_few_is_refused(kept: Path, statement: str) -> None:
    change(kept, statement)
    with pytest.raises(StateError, match="cannot be read"):
        opened(kept)


def edit(file: Path, edited: Callable[[dict[str, Any]], object]) -> None:
    """Change the first row of a state, as a dict."""
    with sqlite3.connect(file) as state:
        (body,) = state.execute("SELECT body FROM state WHERE kind = 'state'").fetchone()
    state.close()
    edited(content := json.loads(body))
    change(file, "UPDATE state SET body = ? WHERE kind = 'state'", json.dumps(content).encode())


def test_a_state_with_a_key_twice_is_refused(kept: Path) -> None:
    edit(kept, lambda content: content["tenants"].append(content["tenants"][0]))
    with pytest.raises(StateError, match="cannot be read"):
        opened(kept)


def test_what_is_to_happen_comes_in_order_however_it_was_stored(kept: Path) -> None:
    edit(kept, lambda content: content["timers"].reverse())
    sandbox = opened(kept)
    assert [change.after for change in sandbox.advance(5)] == ["processing", "completed"]
    sandbox.stop()


def test_rows_of_a_state_show_nothing_of_it() -> None:
    tenant = rows.StoredTenant("sk_sandbox_secret", "f", "active", None, None, {}, [])
    assert repr(tenant) == "<StoredTenant>"


@pytest.mark.skipif(os.name != "posix", reason="POSIX permissions")
@pytest.mark.parametrize("mode", [0o666, 0o640, 0o604, 0o620])
def test_a_state_that_others_may_use_is_refused(file: Path, mode: int) -> None:
    opened(file).stop()
    file.chmod(mode)
    with pytest.raises(StateError, match=rf"others than its owner \(mode {mode:03o}\).*chmod 600"):
        opened(file)
    file.chmod(0o600)
    opened(file).stop()


@pytest.mark.skipif(os.name != "posix", reason="POSIX permissions")
def test_a_state_of_another_owner_is_refused(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened(file).stop()
    owner = os.stat(file).st_uid
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    with pytest.raises(StateError, match=rf"belongs to another user \(uid {owner}\).*name another file"):
        opened(file)


def test_amounts_and_numbers_come_back_digit_for_digit(file: Path) -> None:
    body = b"""{"amount": 10.10, "currency": "GHS", "method": "mobile_money",
        "instrument": {"type": "phone", "phone_number": "+233200000001", "country": "GH"},
        "metadata": {"rate": 1.10, "size": 1E+2, "big": 12345678901234567890123, "whole": 7}}"""
    first = opened(file)
    assert api_of(first).post("/payouts", body).status == 201
    before = api_of(first).get("/payouts").answer.body
    first.stop()
    second = opened(file)
    assert api_of(second).get("/payouts").answer.body == before
    assert b"12345678901234567890123" in before
    second.stop()


KILLED = """
import sys
import threading
from payments_async.sandbox import Sandbox
from tests.sandbox.raw_requests import Api
sandbox = Sandbox(state=sys.argv[1])
for number in range(1_000_000):
    Api(sandbox, sandbox.api_key).payout(reference=f"r-{number}")
    sandbox.save()
    print(number, flush=True)
"""


@pytest.mark.skipif(os.name != "posix", reason="kills a process")
def test_a_process_that_is_killed_while_it_writes_leaves_what_was_saved(file: Path) -> None:
    root = Path(__file__).parents[3]
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, str(file)], cwd=root, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        saved = [int(process.stdout.readline()) for _ in range(20)][-1]
        process.send_signal(signal.SIGKILL)
    sandbox = Sandbox(state=file)
    assert len(sandbox.books.payouts()) > saved
    sandbox.stop()


def test_every_kind_of_record_comes_back(file: Path) -> None:
    first = opened(file, limits=SandboxLimits(window="sliding"))
    first.on("checkouts.create").outcome("failover:2 after=30s", times=1)
    outcomes = ["complete", "fail:DECLINED", *(f"action:{kind}" for kind in ACTION_TYPES)]
    api = api_of(first)
    phone = {"phone": {"number": "+233200000001", "country": "GH"}}
    for outcome in outcomes:
        more = {"restriction": phone} if outcome == "complete" else {"appearance": {"color": "#112233"}}
        made = api.checkout(webhook_url=HOOK, **more).data
        first.pay(made["checkout"]["id"], outcome=outcome)
    paid = first.books.payments(status="completed")[0]
    first.refund(paid.id, Decimal(2))
    pending = first.refund(paid.id, Decimal(1), pending=True)
    for words in ("hang", "fail:NO_FUNDS immediate", "reads=3", "manual", "after=1h delay:5s duplicate:2"):
        made = api.payout(instrument=BANK, metadata={"sandbox_scenario": words}, idempotency_key=words * 2)
        assert made.status == 201
    assert api.intent(scenario="action:collect_otp", customer={"email": "a@b.test"}).status == 201
    api.payout(webhook_url=HOOK, metadata={"sandbox_scenario": "drop"}, scenario="http:503@9")
    first.stop()

    second = opened(file)
    assert rows_of(second) == rows_of(first)
    assert (second.books.payouts(), second.books.payments()) == (
        first.books.payouts(),
        first.books.payments(),
    )
    second.settle(pending)
    assert second.advance(86_400)
    ended = {entry.status for entry in second.books.payments()}
    assert ended == {"expired", "partially_refunded"}
    second.stop()


def rows_of(sandbox: Sandbox) -> list[rows.StateRow]:
    return rows.dump(sandbox._core, sandbox._outbox.queue, sandbox.api_key, sandbox.clock.now())


def test_writing_takes_a_twentieth_of_the_time_at_most(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []

    def wait(pause: float) -> bool:
        pauses.append(pause)
        return len(pauses) == 3

    sandbox = opened(file)
    assert sandbox._saver is not None
    seconds = iter([0.0, 0.01, 10.0, 13.0])
    monkeypatch.setattr(_state, "real_seconds", lambda: next(seconds))
    monkeypatch.setattr(sandbox._saver._ended, "wait", wait)
    sandbox._saver._run()
    assert pauses == [2.0, 2.0, 60.0]
    sandbox.stop()


def test_a_state_that_cannot_be_written_leaves_the_old_one(file: Path) -> None:
    sandbox = opened(file)
    api_of(sandbox).payout()
    sandbox.save()
    assert sandbox._saver is not None
    with pytest.raises(StateError, match="cannot be written"):
        sandbox._saver._file.save([("payout", b"new"), cast("Any", ("payout", object()))])
    sandbox._saver._file.close()
    again = opened(file)
    assert len(again.books.payouts()) == 1
    again.stop()
