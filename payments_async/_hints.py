"""What signatures name and no call needs: loaded when `typing.get_type_hints` asks what it is, not before."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .arguments import CheckoutArguments as CheckoutArguments
    from .arguments import CheckoutPreparation as CheckoutPreparation
    from .arguments import PaymentIntentArguments as PaymentIntentArguments
    from .arguments import PaymentIntentFilters as PaymentIntentFilters
    from .arguments import PaymentIntentIteration as PaymentIntentIteration
    from .arguments import PaymentIntentPreparation as PaymentIntentPreparation
    from .arguments import PayoutArguments as PayoutArguments
    from .arguments import PayoutFilters as PayoutFilters
    from .arguments import PayoutIteration as PayoutIteration
    from .arguments import PayoutPreparation as PayoutPreparation
    from .arguments import ReadOptions as ReadOptions
    from .arguments import Search as Search
    from .arguments import WriteOptions as WriteOptions
    from .events import Event as Event


def __getattr__(name: str) -> Any:
    home = ".events" if name == "Event" else ".arguments"
    return getattr(import_module(home, __package__), name)
