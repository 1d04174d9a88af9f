"""`python -m tests.fidelity.generated`: openapi-python-client makes a client of docs/openapi.json; it pays.

Needs openapi-python-client, which the tests' environment does not have: a part of `nox -s openapi`.
"""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from payments_async.sandbox import Sandbox
from tests.fidelity.document import FILE, operations

PACKAGE = "generated_payments"


def generate(folder: Path) -> None:
    """Make the client; a warning of the generator is a failure."""
    command = ["openapi-python-client", "generate", "--fail-on-warning", "--meta=none"]
    made = folder / PACKAGE
    subprocess.run([*command, f"--path={FILE}", f"--output-path={made}"], check=True)
    functions = {file.stem for file in made.glob("api/*/*.py")} - {"__init__"}
    wanted = {re.sub("([A-Z])", r"_\1", one["operationId"]).lower() for *_, one in operations()}
    assert functions == wanted
    classes = [
        name for file in made.rglob("*.py") for name in re.findall(r"^class (\w+)", file.read_text(), re.M)
    ]
    assert not [name for name in classes if re.search(r"Type\d", name)], classes
    print(f"{len(functions)} operations and {len(classes)} classes, each named by the document")


class Story:
    """Collect a payment, send a payout, list both: with nothing but the generated client."""

    def __init__(self, sandbox: Sandbox) -> None:
        made = importlib.import_module(PACKAGE)
        self.sandbox = sandbox
        self.models = importlib.import_module(f"{PACKAGE}.models")
        self.client = made.AuthenticatedClient(
            base_url=sandbox.base_url, token=sandbox.api_key, raise_on_unexpected_status=True
        )

    def call(self, place: str, **arguments: Any) -> Any:
        """Call an operation, such as `payouts.create_payout`; what the document makes of its answer."""
        return importlib.import_module(f"{PACKAGE}.api.{place}").sync(client=self.client, **arguments)

    def collect(self) -> None:
        """A checkout that the payer pays, and a payment whose method is known."""
        body = self.models.CheckoutRequest(amount=25.5, currency="GHS", return_url="https://shop.test/thanks")
        session = self.call("checkouts.create_checkout", body=body, x_idempotency_key="order-0001").data
        assert session.checkout.url.startswith(self.sandbox.origin)
        assert session.payment.completed_at is None
        self.sandbox.pay(session.payment.id)
        again = self.call("checkouts.retrieve_checkout", checkout_id=session.checkout.id).data
        assert again.payment.completed_at is not None
        attempt = self.models.AttemptInput(method_code="mtn_bj", country="BJ")
        body = self.models.PaymentIntentRequest(amount=50, currency="XOF", attempt=attempt)
        made = self.call(
            "payment_intents.create_payment_intent", body=body, x_idempotency_key="order-0002"
        ).data
        asked = {"payment_intent_id": made.id, "attempt_id": made.active_attempt.id}
        assert self.call("payment_intents.retrieve_attempt", **asked).data.method.value == "mtn_bj"
        page = self.call("payment_intents.list_payment_intents", per_page=1)
        assert ([one.id for one in page.data], page.pagination.has_more_pages) == ([made.id], True)

    def pay_out(self) -> None:
        """A payout, the same again, a second use of its reference, and one that is invalid."""
        wallet = self.models.PhoneInstrument(type_="phone", phone_number="+233200000001", country="GH")
        fields = {"amount": 10.1, "currency": "GHS", "method": "mobile_money", "instrument": wallet}
        body = self.models.PayoutRequest(**fields, reference="invoice-7", metadata=None)
        made, again = (
            self.call("payouts.create_payout", body=body, x_idempotency_key="payout-0007").data
            for _ in range(2)
        )
        assert (made.id, made.status, made.amount.value) == (again.id, "pending", 10.1)
        assert isinstance(self.call("payouts.create_payout", body=body), self.models.Message)
        body = self.models.PayoutRequest(**{**fields, "amount": 0.1})
        assert "amount" in self.call("payouts.create_payout", body=body).errors
        self.sandbox.advance(60)
        (listed,) = self.call("payouts.list_payouts", status="completed").data
        assert (listed.id, listed.instrument.phone_number) == (made.id, "+233200000001")
        assert listed.completed_at.tzinfo is not None


def main() -> None:
    """Generate, import, pay."""
    with tempfile.TemporaryDirectory() as folder, Sandbox() as sandbox:
        generate(Path(folder))
        sys.path.insert(0, folder)
        story = Story(sandbox)
        story.collect()
        story.pay_out()
        assert [payout.reference for payout in sandbox.books.payouts()] == ["invoice-7"]
    print("the generated client collected two payments and sent one payout, once")


if __name__ == "__main__":
    main()
