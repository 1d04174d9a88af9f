"""`payments webhooks`: a local receiver, and sending a delivery of the simulated service again.

listener   `payments webhooks listen`: prints and forwards deliveries
receiver   the server that takes them
forward    one request to another address, or to a sandbox; `payments webhooks resend`
payload    what a delivery claims, without account data
"""

from __future__ import annotations

from typing import Annotated, Final

from cyclopts import App, Parameter
from cyclopts.validators import Number

from .._output import Flag, JsonLinesFlag

Port = Annotated[int | None, Parameter(validator=Number(gte=1, lte=65_535))]

webhooks: Final = App(name="webhooks", help="Receive deliveries on this machine, or have one sent again.")


@webhooks.command
def listen(
    *, port: Port = None, forward: str | None = None, shared: Flag = False, json: JsonLinesFlag = False
) -> int:
    """Receive webhooks on this machine and print each, until Ctrl-C.

    Prints the address to pass as webhook_url. Deliveries are unsigned and prove nothing: what is printed is
    what they claim, without account data.

    Parameters
    ----------
    port
        Where to listen; 7789 unless given.
    forward
        An address of your application to pass each delivery on to. Its answer is printed, and returned to
        the sender; 502 stands for no answer.
    shared
        Take deliveries of every user of this machine, such as a tunnel that runs as another one; your own
        unless given.
    """
    from .listener import listen

    return listen(port, forward, shared=shared, as_json=json)


@webhooks.command
def resend(webhook_id: str, /, *, sandbox: str | None = None, json: JsonLinesFlag = False) -> int:
    """Have `payments sandbox` send a delivery again: `payments webhooks resend wh_00000001`.

    Parameters
    ----------
    webhook_id
        As the sandbox's inspector and `sandbox.webhooks` name it.
    sandbox
        The sandbox's address; PAYMENTS_BASE_URL, or http://127.0.0.1:7788, unless given.
    """
    from .forward import resend

    return resend(webhook_id, sandbox, as_json=json)
