"""Bodies and responses for FastAPI: our requests are checked as bodies, our records are responses.

    @app.post("/payouts")
    async def pay(body: PayoutBody) -> Payout:
        return await client.payouts.create(**body.to_dict())

A wrong body is a 422 with every fault, by our rules and in our words. Personal and account data in a response
is masked, a payment's next action is not; `Annotated[Payout, unmasked]` shows all. Nothing else of
the package imports FastAPI or pydantic.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

from .params import CheckoutRequest, PaymentIntentRequest, PayoutRequest

try:
    from fastapi import Body

    from ._pydantic.records import unmasked
except ImportError as _missing:
    raise ImportError("payments_async.fastapi needs fastapi: pip install fastapi") from _missing

__all__ = ["CheckoutBody", "PaymentIntentBody", "PayoutBody", "unmasked"]

# Without `Body()` FastAPI takes a class that is not a pydantic model for a query parameter.
PayoutBody: TypeAlias = Annotated[PayoutRequest, Body()]
"""A request's JSON body as a `PayoutRequest`."""
CheckoutBody: TypeAlias = Annotated[CheckoutRequest, Body()]
"""A request's JSON body as a `CheckoutRequest`."""
PaymentIntentBody: TypeAlias = Annotated[PaymentIntentRequest, Body()]
"""A request's JSON body as a `PaymentIntentRequest`."""
