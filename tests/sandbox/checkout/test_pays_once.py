"""Whatever a payer does at the hosted checkout, in whatever order, with however old a form, he pays once."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from payments_async.sandbox import Sandbox, VirtualClock
from tests.sandbox.checkout.test_pages import METHODS, Payer, Read, visit
from tests.sandbox.raw_requests import Api

LOOKS = (
    "",
    "?country=BJ&method=sandbox_wallet_balance&x",
    "?country=BJ&method=sandbox_bank&x",
    "/payment",
    "/bank",
)
ANSWERS = ("approve", "decline")
SCENARIOS = (None, "hang", "fail:NO immediate", "action:redirect_to_url", "failover:1 after=5s")

moves = st.one_of(
    st.tuples(st.just("open"), st.sampled_from(LOOKS)),
    st.tuples(st.just("send"), st.integers(0, 30), st.sampled_from(ANSWERS)),
    st.tuples(st.just("forge"), st.integers(0, 30), st.sampled_from(ANSWERS)),
    st.tuples(st.just("wait"), st.sampled_from((1.0, 5.0, 70.0))),
)


@settings(max_examples=150, deadline=None)
@example(None, [("open", LOOKS[1]), ("send", 0, "approve"), ("forge", 0, "approve")])
@given(st.sampled_from(SCENARIOS), st.lists(moves, max_size=25))
def test_no_order_of_looking_and_submitting_pays_twice(
    scenario: str | None, script: list[tuple[str, ...]]
) -> None:
    sandbox = Sandbox(clock=VirtualClock.frozen())
    payer = visit(Api(sandbox, sandbox.api_key), scenario)
    kept: list[tuple[str, dict[str, str]]] = []
    for move in script:
        _act(payer, kept, move)
        attempts = sandbox._core.world.tenants[sandbox.api_key].payments[0].attempts
        assert [attempt.status for attempt in attempts].count("completed") <= 1
        assert all(attempt.is_final for attempt in attempts[:-1])
    assert payer.collected in (0, 50)


def _act(payer: Payer, kept: list[tuple[str, dict[str, str]]], move: tuple[str, ...]) -> None:
    """Look at a page and keep its form, submit one of those kept so far, or let time pass.

    A forged form pretends to have been made just now.
    """
    if move[0] == "wait":
        payer.api.sandbox.advance(float(move[1]))
    elif move[0] == "open":
        answer = payer.get(move[1])
        assert answer.status in (200, 303)
        form = Read(answer.body.decode()).filled
        if "token" in form:
            kept.append(("/bank" if move[1] == "/bank" else "", form))
    elif kept:
        part, form = kept[int(move[1]) % len(kept)]
        if move[0] == "forge":
            form = {**form, "step": payer.step}
        assert payer.send(part, **form, answer=move[2]).status in (200, 303, 400)


def test_the_page_and_the_api_agree_on_which_methods_need_a_phone(api: Api) -> None:
    for code in METHODS.values():
        method = api.intent(attempt={"method_code": code, "country": "BJ"}).data["active_attempt"]["method"]
        assert method["requires_phone"] is (f"{code}-phone" in visit(api).form_for(code))
