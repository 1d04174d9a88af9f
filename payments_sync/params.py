# From payments_async/params/__init__.py; change that, then run: python -m tools.mirror
"""The same objects as in `payments_async.params`."""

from payments_async.params import AppearanceInput as AppearanceInput
from payments_async.params import AttemptInput as AttemptInput
from payments_async.params import CheckoutRequest as CheckoutRequest
from payments_async.params import CheckoutRestriction as CheckoutRestriction
from payments_async.params import CustomerInput as CustomerInput
from payments_async.params import Instrument as Instrument
from payments_async.params import Money as Money
from payments_async.params import Pairs as Pairs
from payments_async.params import Params as Params
from payments_async.params import PaymentFields as PaymentFields
from payments_async.params import PaymentIntentRequest as PaymentIntentRequest
from payments_async.params import PayoutRequest as PayoutRequest
from payments_async.params import PhoneInput as PhoneInput
from payments_async.params import PreparedRequest as PreparedRequest
from payments_async.params import decimal_if_readable as decimal_if_readable
