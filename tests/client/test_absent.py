"""Calls that other SDKs have and the interface does not: the error says what to do instead."""

from __future__ import annotations

import pytest

from payments_async._call_signatures import ABSENT
from tests.support.scripted import ScriptedTransport
from tests.support.surfaces import Connect

OWNERS = {
    "Payments": "",
    "Payouts": "payouts",
    "PaymentIntents": "payment_intents",
    "Checkouts": "checkouts",
    "Methods": "methods",
}


@pytest.mark.parametrize(
    ("owner", "name", "instead"),
    [(owner, name, instead) for owner, names in ABSENT.items() for name, instead in names.items()],
)
def test_an_absent_call_says_what_to_do_instead(
    connect: Connect, owner: str, name: str, instead: str
) -> None:
    client = connect(transport=ScriptedTransport())
    found = getattr(client, OWNERS[owner]) if OWNERS[owner] else client
    with pytest.raises(AttributeError) as caught:
        getattr(found, name)
    assert str(caught.value).endswith(f"has no attribute {name!r}: the interface has no such call; {instead}")
    assert not hasattr(found, name)


def test_any_other_slip_is_python_s_own_error(connect: Connect) -> None:
    client = connect(transport=ScriptedTransport())
    with pytest.raises(AttributeError, match=r"object has no attribute 'craete'$") as caught:
        client.payouts.craete  # noqa: B018 # the point
    assert (caught.value.name, caught.value.obj is None) == ("craete", False)
