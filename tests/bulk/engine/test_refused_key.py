"""What a run that was stopped can do next: go on at once, or only after something was mended."""

from __future__ import annotations

from decimal import Decimal

import pytest

from payments_async.bulk.protocol.responses import refuses_access, why
from payments_async.bulk.protocol.row_state import RowState
from payments_async.bulk.protocol.stop_rules import Stop, Totals, exit_code, resumable
from payments_async.errors import (
    APIConnectionError,
    APIStatusError,
    AuthenticationError,
    ConfigurationError,
    NotFoundError,
    PaymentsError,
    PermissionDeniedError,
    RateLimitedError,
    ServerError,
)


def _answered(kind: type[APIStatusError], status: int) -> APIStatusError:
    return kind("told", status=status, service_message=None, errors={}, headers={}, body=b"")


@pytest.mark.parametrize(
    ("error", "shut_out"),
    [
        (_answered(AuthenticationError, 401), True),
        (_answered(PermissionDeniedError, 403), True),
        (_answered(NotFoundError, 404), True),
        (_answered(APIStatusError, 302), True),
        (APIConnectionError("told", kind="tls"), True),
        (ConfigurationError("told"), True),
        (_answered(RateLimitedError, 429), False),
        (_answered(ServerError, 503), False),
        (APIConnectionError("told", kind="connect"), False),
        (PaymentsError("told"), False),
    ],
)
def test_a_refused_key_and_a_wrong_address_shut_a_run_out(error: PaymentsError, shut_out: bool) -> None:
    assert refuses_access(error) is shut_out


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (_answered(AuthenticationError, 401), "refused the API key (HTTP 401): use a valid key of the same"),
        (_answered(PermissionDeniedError, 403), "this machine's address (HTTP 403): put that address on"),
        (
            _answered(NotFoundError, 404),
            "something else than the service answered (HTTP 404): check",
        ),
        (
            _answered(APIStatusError, 302),
            "something else than the service answered (HTTP 302): check",
        ),
        (APIConnectionError("told", kind="tls"), "something else than the service answered (tls): check the"),
        (ConfigurationError("the key was replaced"), "the key was replaced"),
    ],
)
def test_what_keeps_a_run_out_is_one_sentence_that_says_what_mends_it(
    error: PaymentsError, told: str
) -> None:
    assert told in why(error)
    assert why(error).count("HTTP") <= 1
    assert not why(error).endswith(".")


@pytest.mark.parametrize(
    ("stop", "code", "when"),
    [
        (None, 75, "now"),
        (Stop.TEMPORARY, 75, "now"),
        (Stop.RULE, 75, "after_change"),
        (Stop.NO_ACCESS, 2, "after_change"),
    ],
)
def test_what_stopped_a_run_says_when_it_can_go_on(stop: Stop | None, code: int, when: str) -> None:
    assert (exit_code(_tally(RowState.NEW), stop=stop), resumable(stop)) == (code, when)
    assert exit_code(_tally(RowState.IN_FLIGHT), stop=stop) == code
    assert exit_code(_tally(RowState.IN_DOUBT), stop=stop) == 3  # that money may have moved matters more
    assert exit_code(_tally(RowState.CREATED), stop=stop) == 0


def _tally(state: RowState) -> Totals:
    return Totals.of({(state, "XOF"): (1, Decimal(5))})
