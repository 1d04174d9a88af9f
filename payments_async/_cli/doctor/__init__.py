"""`payments doctor`: checks the set-up from key to service, as a report that can go into a ticket.

report      all findings in order, and the exit code
checks      versions, settings, the way to the service, guard, limit store, and one harmless read
probes      what batches assume of the service (docs/bulk.md), tried with a sandbox key
"""

from __future__ import annotations

from .._output import Flag, JsonLinesFlag, show_for


def doctor(
    *,
    probe: Flag = False,
    proxy: str | None = None,
    method: str = "mobile_money",
    currency: str = "GHS",
    phone: str = "+233200000001",
    country: str = "GH",
    json: JsonLinesFlag = False,
) -> int:
    """Check versions, key, address, network, guard, clock and limits, and print a report for a ticket.

    Reads one page of payouts with PAYMENTS_API_KEY at PAYMENTS_BASE_URL, and changes nothing there.
    In a limit store it makes the table if it is missing, and leaves an entry that asks for no permit. The
    report holds no key, password or account data.

    Parameters
    ----------
    probe
        Also try what batches assume of the service; makes four payouts, with a sandbox key only.
    proxy
        Address of an HTTP proxy, as your client gets it.
    method
        Method of the payouts of --probe.
    currency
        Their currency.
    phone
        The phone number that they go to.
    country
        Its country.
    """
    from .probes import ProbePayout
    from .report import run_doctor  # imports the client

    payout = ProbePayout(method, currency, phone, country) if probe else None
    return run_doctor(show_for(as_json=json), proxy, payout)
