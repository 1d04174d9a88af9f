"""Changes of a shared row: races, requests that others carry out, processes that stop. Times are seconds."""

from __future__ import annotations

import copy
import json
from typing import Any, cast

import attrs
import pytest

from payments_async import ConfigurationError
from payments_async._rate_limit.compare_and_set import (
    ANSWER_KEPT,
    REQUEST_KEPT,
    ROUNDS,
    RowRead,
)
from payments_async._rate_limit.store import PermitRequest, Reservation, StoreUnavailable
from tests.rate_limit.fleet import EPOCH, ROW, Connection, after


class Server:
    """One row, and the time."""

    def __init__(self) -> None:
        self.row = RowRead("", "", {}, EPOCH)
        self.now = EPOCH

    def content(self) -> Any:
        return json.loads(self.row.content)


class Process(Connection):
    """A process whose messages arrive one by one, when the test says so."""

    def __init__(self, server: Server, name: str = "a") -> None:
        super().__init__("the store")
        self.server = server
        self.worker = name
        self.rounds = 0

    def ask(self, wanted: int = 1, **more: Any) -> Process:
        """Send the first message of a reservation."""
        values = {"limit": 60_000, "held": 0, "lifetime": 35.0, **more}
        return self.begin(self.reserve(ROW, PermitRequest(worker=self.worker, wanted=wanted, **values)))

    def begin(self, call: Any) -> Process:
        """Send the first message of a change."""
        self.call = call
        self._write = self.call.send(None)
        return self

    def go_on(self) -> Reservation | None:
        """Let the message under way arrive, and send the next. Returns the answer, once there is one."""
        self.rounds += 1
        self.server.row = after(self.server.row, self._write, self.server.now)
        try:
            self._write = self.call.send(self.server.row)
        except StopIteration as ended:
            return cast(Reservation, ended.value)
        return None

    def finish(self) -> Reservation:
        """Let all messages arrive."""
        while (answer := self.go_on()) is None:
            pass
        return answer


class Counting:
    """A rule that adds numbers, and answers with the sum and the seconds that the request waited."""

    def read(self, values: Any) -> int:
        return int(values["sum"]) if values else 0

    def write(self, state: int) -> dict[str, int]:
        return {"sum": state}

    def change(
        self, state: int, kind: str, values: dict[str, Any], now: float, waited: float
    ) -> tuple[int, Any]:
        state += values[kind]
        return state, [state, waited]


@pytest.fixture
def server() -> Server:
    return Server()


def test_a_row_carries_any_rule_and_each_process_gets_the_answer_to_its_own_request(server: Server) -> None:
    row = attrs.evolve(ROW, kind="guard")
    slow, fast = Process(server, "slow"), Process(server, "fast")
    for process, number in ((slow, 5), (fast, 7)):
        process.begin(process.change(row, Counting(), "add", {"add": number}))
        process.go_on()
        server.now += 0.5
    assert cast(Any, fast.finish()) == ([12, 0.0], EPOCH + 1.0)
    assert cast(Any, slow.finish()) == ([5, 0.5], EPOCH + 1.0)
    assert server.content()[0] == {"sum": 12}


def test_a_change_takes_two_round_trips(server: Server) -> None:
    process = Process(server).ask(3)
    assert process.finish().granted == 3
    assert process.rounds == 2


def test_processes_in_step_take_three_round_trips_however_many_they_are(server: Server) -> None:
    first, *others = processes = [Process(server, f"p{number}").ask(10) for number in range(40)]
    for process in processes:
        process.go_on()
    answers = [first.finish(), *(answer for process in others if (answer := process.go_on()))]
    answers += [process.finish() for process in others]
    assert {process.rounds for process in others} == {3}
    assert len({answer.wait for answer in answers}) == 40
    alive = [worker["alive"] for worker in server.content()[0]["workers"].values()]
    assert sum(alive) == sum(answer.granted for answer in answers)


def test_the_winner_of_a_race_carries_out_the_request_of_the_loser_once(server: Server) -> None:
    slow = Process(server, "slow").ask(5)
    slow.go_on()
    Process(server, "fast").ask().finish()  # it may be dead from now on
    assert slow.finish().granted == 5
    assert slow.rounds == 2
    assert server.row.requests  # its lost message left the request there once more
    server.now += 0.5
    Process(server, "other").ask().finish()
    assert server.content()[0]["workers"]["slow"]["seen"] == EPOCH
    assert not server.row.requests


def test_requests_are_carried_out_in_the_order_in_which_they_came(server: Server) -> None:
    first, second = Process(server, "first").ask(1000), Process(server, "second").ask(1000)
    first.go_on()
    server.now += 0.1
    second.go_on()
    server.row = attrs.evolve(server.row, requests=dict(reversed(server.row.requests.items())))
    later = Process(server).ask(1000).finish()
    assert first.finish().wait < second.finish().wait < later.wait


def test_what_a_process_asked_before_it_stopped_is_not_carried_out_a_minute_later(server: Server) -> None:
    other = Process(server, "other")
    last = other.ask(1000).finish()
    stopped = Process(server, "stopped").ask(1000, last=last, ago=0.0)
    stopped.go_on()
    server.now += 60.0
    last = other.ask(1000, last=last, ago=60.0).finish()
    with pytest.raises(StoreUnavailable, match="did not make a change in time"):
        stopped.finish()
    assert server.row.requests  # from a minute ago by its content, not by the time when it came
    answer = other.ask(last=last, ago=0.0).finish()
    assert set(server.content()[0]["workers"]) == {"other"}
    assert answer.born == EPOCH  # nor did the clock seem to have been set
    assert not server.row.requests


def test_an_answer_says_how_late_it_is(server: Server) -> None:
    stopped = Process(server).ask(1000)
    stopped.go_on()
    server.now += 60.0
    answer = stopped.finish()  # nobody changed the row meanwhile
    assert (answer.at, answer.waited, answer.late) == (EPOCH, 0.0, 60.0)
    assert answer.at + answer.wait == pytest.approx(server.content()[0]["tail"])


@pytest.mark.parametrize("step", [REQUEST_KEPT + 0.1, -3600.0])
def test_a_request_from_before_the_clock_was_set_is_put_off(server: Server, step: float) -> None:
    process = Process(server).ask(3)
    process.go_on()
    server.now += step
    Process(server, "b").ask().finish()
    assert set(server.content()[0]["workers"]) == {"b"}
    with pytest.raises(StoreUnavailable):
        process.finish()


def test_the_time_for_which_a_request_waited_is_no_step_of_the_clock(server: Server) -> None:
    process = Process(server)
    last = process.ask().finish()
    process.ask(last=last, ago=0.0)
    process.go_on()
    server.now += 1.5
    Process(server, "b").ask().finish()
    answer = process.finish()
    assert (answer.at, answer.born, answer.waited) == (EPOCH + 1.5, last.born, 1.5)


def test_answers_of_processes_that_are_gone_are_dropped(server: Server) -> None:
    Process(server, "gone").ask().finish()
    server.now += ANSWER_KEPT
    Process(server).ask().finish()
    assert len(server.content()[1]) == 1


def test_a_row_that_is_lost_again_and_again_puts_the_change_off(server: Server) -> None:
    process = Process(server).ask()
    with pytest.raises(StoreUnavailable, match="did not make a change in time"):
        while True:
            server.row = RowRead(f"stale {process.rounds}", "", {}, server.now)
            process.go_on()
    assert process.rounds == ROUNDS


def test_requests_of_processes_that_die_are_one_for_each_until_another_changes_the_row(
    server: Server,
) -> None:
    Process(server).ask().finish()
    dying = Process(server, "dying")
    for _ in range(5):
        dying.ask(5).go_on()
        dying.call.close()
    assert len(server.row.requests) == 1
    Process(server, "b").ask().finish()
    assert not server.row.requests
    assert server.content()[0]["workers"]["dying"]["alive"] == 5  # until its last request would have ended


@pytest.mark.parametrize(
    "content", ["{", "[1]", "[{}, {}]", '[{"born": 1}, {}]', '[null, {"b": 1}]', "[null, []]", ""]
)
def test_a_row_that_cannot_be_read_is_refused_and_left_as_it_is(server: Server, content: str) -> None:
    requests = {} if content else {"b": (EPOCH, '[1, null, "reserve", {}]')}
    server.row = RowRead("damaged", content, requests, EPOCH)
    with pytest.raises(ConfigurationError, match=r"^the store has a row that cannot be read, .*: delete the"):
        Process(server).ask().finish()
    assert server.row.content == content


def test_a_copy_with_the_same_name_and_numbers_gets_no_answer_of_the_others(server: Server) -> None:
    """As of a machine that was restored twice from one snapshot."""
    one = Process(server)
    other = copy.deepcopy(one)
    other.server = server
    row = attrs.evolve(ROW, kind="guard")
    for process, number in ((one, 5), (other, 7)):
        process.begin(process.change(row, Counting(), "add", {"add": number}))
    one.go_on()
    first = one._write.version
    assert cast(Any, one.finish())[0] == [5, 0.0]
    with pytest.raises(StoreUnavailable):
        other.finish()
    assert other._write.version.partition(".")[0] not in first
    other.begin(other.change(row, Counting(), "add", {"add": 7}))
    assert cast(Any, other.finish())[0] == [12, 0.0]
    assert server.content()[0] == {"sum": 12}
