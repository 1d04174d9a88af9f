"""The key shows nowhere, account data only where it is asked for: every ending, every way to show things."""

from __future__ import annotations

import asyncio
import base64
import logging
import pickle
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import attrs
import pytest

from payments_async import Instrument, PaymentIntent, Payout
from payments_async.errors import DecodeError, PaymentsError, ResponseMismatch
from payments_async.params import CheckoutRequest, PayoutRequest
from payments_async.sandbox import Sandbox
from tests.support.canary import (
    CANARY_ACCOUNT,
    CANARY_KEY,
    LONG_CANARY_KEY,
    NEEDLE,
    chain,
    echoed,
    pickled,
    printed,
    shown_by,
    told_by,
)
from tests.support.creations import PAYOUT
from tests.support.jumping import JumpingRuntime
from tests.support.scripted import ScriptedTransport, answer, lost, unsent
from tests.support.surfaces import Connect
from tests.support.watched import WatchedSandbox

pytestmark = pytest.mark.fact("auth.key-stays-secret")

BANK = Instrument.bank_account(CANARY_ACCOUNT, "058", "NG", account_name="Ada Adeyemi")
ARGUMENTS = {**PAYOUT, "amount": Decimal("10.10"), "instrument": BANK, "reference": "inv-7"}
RECORD = {
    "id": "po_1",
    "amount": {"value": 10.10, "currency": "XOF"},
    "reference": "inv-7",
    "instrument": {"id": "in_1", "type": "bank_account", "account_number": CANARY_ACCOUNT},
}
ECHO = {
    "message": f"The account {CANARY_ACCOUNT} is closed.",
    "errors": {"instrument.account_number": [f"{CANARY_ACCOUNT} is not known"]},
}
ENDINGS: dict[str, Any] = {
    **{str(status): answer(status, ECHO) for status in (302, 401, 409, 422, 429, 503)},
    "not JSON": answer(201, b"<html>" + CANARY_ACCOUNT.encode()),
    "without an id": answer(201, {"data": {**RECORD, "id": None}}),
    "of another type": answer(201, {"data": {**RECORD, "amount": [CANARY_ACCOUNT]}}),
    "another record": answer(201, {"data": {**RECORD, "reference": "inv-8"}}),
    "lost": lost(),
    "unsent": unsent("timeout"),
}
ECHOED = {f"{name}, with the key": echoed(step) for name, step in ENDINGS.items() if hasattr(step, "status")}


@attrs.define(eq=False)
class Watch:
    caplog: pytest.LogCaptureFixture
    events: list[Any] = attrs.field(factory=list)

    def said(self) -> str:
        """Log records with all they hold, and events."""
        records = [f"{vars(record)}{record.getMessage()}" for record in self.caplog.records]
        return "\n".join([self.caplog.text, *records, *map(shown_by, self.events)])


@pytest.fixture
def watch(caplog: pytest.LogCaptureFixture) -> Watch:
    """Every logger at DEBUG, and a listener."""
    caplog.set_level(logging.DEBUG)
    for name in ("payments", "asyncio", "aiohttp.client", "aiohttp.access", "concurrent.futures"):
        caplog.set_level(logging.DEBUG, logger=name)
    return Watch(caplog)


def check_error(error: BaseException, watch: Watch) -> None:
    """An error and its whole past, with all locals, shows neither; a pickle of it no key."""
    for shown in (told_by(error), printed(error), watch.said()):
        assert NEEDLE not in shown
        assert CANARY_ACCOUNT not in shown
    assert NEEDLE not in shown_by(error) + pickled(error)
    assert CANARY_ACCOUNT not in pickled(error)


@pytest.mark.parametrize("ending", [*ENDINGS, *ECHOED])
async def test_no_ending_of_a_write_shows_key_or_account(connect: Connect, watch: Watch, ending: str) -> None:
    """Whatever the service says, its repeating the key included."""
    asyncio.get_running_loop().set_debug(True)
    transport = ScriptedTransport({**ENDINGS, **ECHOED}[ending])
    options = {"runtime": JumpingRuntime(), "max_retries": 1, "on_event": watch.events.append}
    client = connect(transport=transport, api_key=LONG_CANARY_KEY, **options)
    with pytest.raises(PaymentsError) as caught:
        await client.payouts.create(**ARGUMENTS)

    for error in chain(caught.value):
        check_error(error, watch)
        body, message = getattr(error, "body", None), getattr(error, "message", None)
        if ending in ECHOED:
            assert body is None or b"sk_sandbox_***" in body.raw
            assert not message or message == "Invalid API key: sk_sandbox_***."
            assert not message or error.request_id == "sk_sandbox_***"
        else:
            assert body is None or CANARY_ACCOUNT in body.text()
    assert watch.events
    assert NEEDLE not in shown_by(transport.requests[0])
    assert str(transport.requests[0].headers["Authorization"]) == f"Bearer {LONG_CANARY_KEY}"


def body_of(key: str) -> str:
    return key.removeprefix("sk_sandbox_")


def full_width(text: str) -> str:
    return "".join(chr(ord(sign) + 0xFEE0) for sign in text)


def base64_of(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


FORMS: dict[str, tuple[Callable[[str], str], Callable[[str], str]]] = {
    "without its prefix": (body_of, body_of),
    "in lower case": (lambda key: body_of(key).lower(), lambda key: body_of(key).lower()),
    "%5F": (lambda key: key.replace("_", "%5F"), body_of),
    "%255f": (lambda key: key.replace("_", "%255f"), body_of),
    "every character escaped": (
        lambda key: "".join(f"%{ord(sign):02X}" for sign in key),
        lambda key: "".join(f"%{ord(sign):02X}" for sign in body_of(key)),
    ),
    "base64": (base64_of, lambda key: base64_of(key)[16:-8]),
    "base64 of the header": (
        lambda key: base64_of(f"Bearer {key}"),
        lambda key: base64_of(f"Bearer {key}")[26:-8],
    ),
    "base64 of user and password": (
        lambda key: base64_of(f"{key}:"),
        lambda key: base64_of(f"{key}:")[16:-8],
    ),
    "base64 for addresses": (
        lambda key: base64.urlsafe_b64encode(body_of(key).encode()).decode(),
        lambda key: base64.urlsafe_b64encode(body_of(key).encode()).decode()[:-8],
    ),
    "full width": (full_width, lambda key: full_width(body_of(key))),
}
"""{form: how a service writes the key; what of it must not be shown}."""


@pytest.mark.parametrize("key", [CANARY_KEY, LONG_CANARY_KEY], ids=["short", "long"])
@pytest.mark.parametrize("form", FORMS)
async def test_the_own_key_is_masked_in_any_form(connect: Connect, watch: Watch, form: str, key: str) -> None:
    written, secret = FORMS[form]
    transport = ScriptedTransport(echoed(answer(403, ECHO), written))
    client = connect(transport=transport, api_key=key, on_event=watch.events.append)
    with pytest.raises(PaymentsError) as caught:
        await client.payouts.create(**ARGUMENTS)
    error = caught.value
    shown = told_by(error) + printed(error) + watch.said() + shown_by(error) + pickled(error)
    for said in (shown, error.body.text(), str(vars(error))):
        assert secret(key) not in said
    assert "***" in error.message


async def test_a_short_key_is_masked_as_a_whole_only(connect: Connect) -> None:
    """`payments` is a word, and is no secret without its prefix."""
    said = answer(403, {"message": "payments sk%5Fsandbox%5Fpayments"})
    with pytest.raises(PaymentsError) as caught:
        await connect(transport=ScriptedTransport(said), api_key="sk_sandbox_payments").payouts.list()
    assert caught.value.message == "payments ***"


@pytest.mark.parametrize(
    "record", [{"id": LONG_CANARY_KEY, "amount": "none"}, {**RECORD, "reference": LONG_CANARY_KEY}]
)
async def test_an_error_passes_on_no_key_of_its_record(connect: Connect, record: dict[str, Any]) -> None:
    """The record itself stays what the service said; a pickle leaves it behind."""
    client = connect(transport=ScriptedTransport(answer(201, {"data": record})), api_key=LONG_CANARY_KEY)
    with pytest.raises((DecodeError, ResponseMismatch)) as caught:
        await client.payouts.create(**ARGUMENTS)
    facts = vars(caught.value)
    assert NEEDLE not in pickled(caught.value) + f"{facts.get('record_id')} {facts.get('differences')}"


async def test_a_record_whose_answer_repeats_the_key_does_not_show_it(connect: Connect) -> None:
    transport = ScriptedTransport(echoed(answer(201, {"data": RECORD})))
    client = connect(transport=transport, api_key=LONG_CANARY_KEY)
    payout = await client.payouts.create(**ARGUMENTS)
    assert payout.response.message == "Invalid API key: sk_sandbox_***."
    shown = f"{payout!r} {payout.response!r} {pickle.loads(pickle.dumps(payout)).response.headers}"
    assert NEEDLE not in shown + pickled(payout)


async def test_no_repr_shows_account_data(connect: Connect, watched: WatchedSandbox, watch: Watch) -> None:
    watched.admit(LONG_CANARY_KEY)
    watched.on("payouts.create").respond("http:503")
    client = connect(watched, api_key=LONG_CANARY_KEY, on_event=watch.events.append)
    payout = await client.payouts.create(**ARGUMENTS)
    (listed,) = await client.payouts.list()

    assert len(payout.response.attempts) == 2
    for record in (payout, listed):
        assert record.instrument.account_number == CANARY_ACCOUNT
        assert CANARY_ACCOUNT in str(record.to_dict(unmasked=True))
        assert CANARY_ACCOUNT in record.to_json()
        masked = str(record.to_dict())
        for shown in (repr(record), str(record), f"{record!r:.400}", repr([record]), masked, watch.said()):
            assert CANARY_ACCOUNT not in shown
            assert "Ada" not in shown
    assert NEEDLE not in pickled(payout) + shown_by(payout) + shown_by(payout.response)
    assert CANARY_ACCOUNT in pickled(payout)


async def test_no_repr_shows_the_token_of_a_receivers_address(connect: Connect, sandbox: Sandbox) -> None:
    url, shown = "http://127.0.0.1:9/hooks/Xk4tokenXk4?t=Xk4", "'http://127.0.0.1:9/hooks/***?***'"
    client = connect(sandbox)
    payout = await client.payouts.create(**ARGUMENTS, webhook_url=url)
    checkout = {"amount": 5, "currency": "GHS", "return_url": "https://shop.test/", "webhook_url": url}
    await client.checkouts.create(**checkout)
    (intent,) = await client.payment_intents.list()
    sandbox.clock.advance(60)
    world = sandbox._core.world.tenants[sandbox.api_key]
    requests = [PayoutRequest(**ARGUMENTS, webhook_url=url), CheckoutRequest(**checkout)]
    for value in (payout, intent, *requests, *sandbox.deliveries, *world.payouts, *world.payments):
        assert "Xk4" not in repr(value)
    records = [Payout(webhook_url=payout.webhook_url), PaymentIntent(webhook_url=intent.webhook_url)]
    for value in (*records, *requests):
        assert f"webhook_url={shown}" in repr(value)
    dotted = shown.replace("***", "•••")
    assert {f"url={dotted}" in repr(value) for value in sandbox.deliveries} == {True}
    assert payout.webhook_url == intent.webhook_url == requests[0].webhook_url == url
    assert "webhook_url" not in repr(PayoutRequest(**ARGUMENTS))


async def test_nothing_of_a_client_shows_its_key(connect: Connect) -> None:
    def give() -> str:
        return LONG_CANARY_KEY

    for key in (LONG_CANARY_KEY, give):
        client = connect(transport=ScriptedTransport(answer(200, {"data": [RECORD]})), api_key=key)
        await client.payouts.list()
        prepared = client.payouts.prepare(**ARGUMENTS)
        sibling, merchant = client.with_options(timeout=1.0), client.with_options(api_key=key)
        await merchant.payouts.list()
        for value in (client, sibling, merchant, client.payouts, prepared, client.limits_snapshot()):
            assert NEEDLE not in shown_by(value)
        assert NEEDLE not in pickled(prepared) + prepared.to_json()
        assert CANARY_ACCOUNT not in shown_by(client) + repr(prepared) + repr([prepared])
