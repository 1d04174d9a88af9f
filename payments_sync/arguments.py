# From payments_async/arguments.py; change that, then run: python -m tools.mirror
"""The same objects as in `payments_async.arguments`."""

from payments_async.arguments import CheckoutArguments as CheckoutArguments
from payments_async.arguments import CheckoutFields as CheckoutFields
from payments_async.arguments import CheckoutPreparation as CheckoutPreparation
from payments_async.arguments import PaymentIntentArguments as PaymentIntentArguments
from payments_async.arguments import PaymentIntentFields as PaymentIntentFields
from payments_async.arguments import PaymentIntentFilters as PaymentIntentFilters
from payments_async.arguments import PaymentIntentIteration as PaymentIntentIteration
from payments_async.arguments import PaymentIntentPreparation as PaymentIntentPreparation
from payments_async.arguments import PayoutArguments as PayoutArguments
from payments_async.arguments import PayoutFields as PayoutFields
from payments_async.arguments import PayoutFilters as PayoutFilters
from payments_async.arguments import PayoutIteration as PayoutIteration
from payments_async.arguments import PayoutPreparation as PayoutPreparation
from payments_async.arguments import PrepareOptions as PrepareOptions
from payments_async.arguments import ReadOptions as ReadOptions
from payments_async.arguments import Search as Search
from payments_async.arguments import SendOptions as SendOptions
from payments_async.arguments import WriteOptions as WriteOptions
