"""JSON of payments, attempts and sessions, colours included (`docs/interface.md`, Resources)."""

from __future__ import annotations

from collections.abc import Mapping

from .._common.iso_codes import amount_form, country_form, currency
from .._common.json import JsonObject
from .._common.timestamps import stamp, stamp_or_null
from .payout_json import (
    customer_form,
    failure_form,
    gateway_transaction,
    method_category,
    method_form,
    rate_form,
)
from .records import AttemptRecord, CheckoutRecord, PaymentRecord

BLACK, WHITE = "#000000", "#ffffff"
_SHADES = 20


def parts(colour: str) -> tuple[int, int, int]:
    """Red, green and blue, 0 to 255 each."""
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def full(text: str) -> str:
    """Write a hex colour out in full: `FE0` is `#ffee00`, and so is `#ffee0080`, as all are opaque here."""
    digits = text.removeprefix("#").lower()
    return "#" + ("".join(digit * 2 for digit in digits) if len(digits) == 3 else digits[:6])


def contrast(one: str, other: str) -> float:
    dark, light = sorted((_luminance(one), _luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def text_on(colour: str) -> str:
    """Black or white, whichever reads better on `colour`: never below a ratio of 4.5."""
    return max(WHITE, BLACK, key=lambda text: contrast(text, colour))


def visible_on(ground: str, colour: str, least: float = 3.0) -> str:
    """`colour`, moved away from `ground` in small shades until it stands out by `least`."""
    return next(filter(lambda shade: contrast(shade, ground) >= least, _shades(colour, text_on(ground))))


def _shades(colour: str, end: str) -> list[str]:
    """Blend from one colour to another, in small steps."""
    ways = list(zip(parts(colour), parts(end), strict=True))
    return [
        "#" + "".join(f"{a + (b - a) * step // _SHADES:02x}" for a, b in ways) for step in range(_SHADES + 1)
    ]


def _luminance(colour: str) -> float:
    red, green, blue = (_linear(part / 255) for part in parts(colour))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _linear(part: float) -> float:
    return part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4


_ACTION_FIELDS = (
    "message",
    "instructions",
    "dial_code",
    "digits",
    "is_strict",
    "fields",
    "url",
    "method",
    "post_data",
    "can_auto_redirect",
    "content",
    "image_url",
    "title",
    "provider",
    "sdk_url",
    "public_key",
    "client_params",
    "container_id",
)
ACTIONS = "/actions/"
"""The path of the attempts' pages; each attempt has its own below its id."""

_ADDRESSES: Mapping[str, Mapping[str, str]] = {
    "redirect_to_url": {"url": "bank"},
    "embed_iframe": {"url": "frame"},
    "collect_otp": {"url": "code"},
    "scan_qr_code": {"content": "phone", "image_url": "qr.svg"},
    "complete_with_sdk": {"sdk_url": "sdk.js"},
}
"""The fields that name a page of the attempt, by action."""

_ACTIONS: Mapping[str, JsonObject] = {
    "none": {},
    "redirect_to_url": {
        "message": "Continue at your bank.",
        "method": "GET",
        "can_auto_redirect": True,
    },
    "embed_iframe": {"message": "Continue in the frame.", "title": "Bank"},
    "collect_otp": {
        "message": "Enter the one-time code.",
        "digits": 6,
        "is_strict": True,
        "fields": [{"name": "otp", "type": "digits", "label": "One-time code"}],
        "method": "POST",
        "post_data": {},
    },
    "approve_on_phone": {
        "message": "Approve the payment on your phone.",
        "instructions": ["Dial the code.", "Choose the payment.", "Enter your PIN."],
        "dial_code": "*123#",
    },
    "scan_qr_code": {"message": "Scan the code with your application."},
    "display_payment_instructions": {
        "title": "Pay by transfer",
        "message": "Send the amount with the reference.",
        "instructions": ["Open your bank.", "Send the amount.", "Give the reference."],
    },
    "complete_with_sdk": {
        "provider": "sandbox_card",
        "public_key": "pk_sandbox_0000",
        "client_params": {"locale": "en"},
        "container_id": "sandbox-payment",
    },
}


def next_action(attempt: AttemptRecord, *, in_list: bool) -> JsonObject:
    """The next action (gap K): the payer's task, and the pages of this sandbox for it."""
    kind = attempt.plan.outcome.action if attempt.status == "action_required" else "none"
    pages = f"{attempt.payment.site.pages}{ACTIONS}{attempt.id}/"
    addresses = {name: pages + part for name, part in _ADDRESSES.get(kind, {}).items()}
    details = {**_ACTIONS[kind], **addresses}
    form: JsonObject = {"type": kind} if in_list else {}
    form.update((name, details.get(name)) for name in _ACTION_FIELDS)
    return form


def _failover(attempt: AttemptRecord) -> JsonObject:
    if not attempt.is_failover:
        return {"is_failover": False, "decision": None}
    return {"is_failover": True, "decision": {"reason": "GATEWAY_UNAVAILABLE", "strategy": "next_gateway"}}


def attempt_form(attempt: AttemptRecord, *, in_list: bool = False) -> JsonObject:
    """The JSON of a payment attempt: as in the list with `in_list`, else as in all other operations."""
    payment = attempt.payment
    form: JsonObject = {
        "id": attempt.id,
        "method": method_form(attempt.method),
        "amount": amount_form(payment.amount, attempt.currency),
        "exchange_rate": rate_form(payment.currency, attempt.currency) if in_list else 1,
        "correction_rate": 1,
        "gateway": {"transaction": gateway_transaction(attempt.gateway, attempt.status)},
        "next_action": next_action(attempt, in_list=in_list),
        "failover": _failover(attempt),
        "completed_at": stamp_or_null(attempt.completed_at),
        "failed_at": stamp_or_null(attempt.failed_at),
        "created_at": stamp(attempt.created_at),
    }
    if attempt.failure is not None:
        form["failure"] = failure_form(attempt.failure, with_category=in_list)
    if in_list:
        form["status"] = attempt.status
        form["processing_at"] = stamp_or_null(attempt.processing_at)
        form["action_required_at"] = stamp_or_null(attempt.action_required_at)
        form["expired_at"] = stamp_or_null(attempt.expired_at)
    return form


def _common(payment: PaymentRecord, *, in_list: bool) -> JsonObject:
    active = payment.active_attempt
    given = ("description", "return_url", "webhook_url", "statement_descriptor", "receipt_email", "metadata")
    return {
        "id": payment.id,
        "amount": amount_form(payment.amount, payment.currency),
        "customer": customer_form(payment.customer_id, payment.body),
        **{name: payment.body.get(name) for name in given},
        "active_attempt": attempt_form(active, in_list=in_list) if active else None,
        "completed_at": stamp_or_null(payment.completed_at),
        "created_at": stamp(payment.created_at),
    }


def payment_form(payment: PaymentRecord) -> JsonObject:
    """The JSON of a payment intent, as in creations and checkouts."""
    return {
        **_common(payment, in_list=False),
        "refunds_summary": {
            "refunded_amount": amount_form(payment.refunded, payment.currency),
            "pending_amount": amount_form(payment.reserved, payment.currency),
            "refundable_amount": amount_form(payment.refundable, payment.currency),
            "has_pending_refund": payment.reserved > 0,
        },
        "expires_at": stamp(payment.expires_at),
    }


def payment_list_form(payment: PaymentRecord) -> JsonObject:
    """The JSON of a payment intent, as in the list."""
    return {
        **_common(payment, in_list=True),
        "reference": payment.reference,
        "status": payment.status,
        "restriction": {
            "payment_methods": {"allow": [], "deny": []},
            "payment_method_categories": {"allow": [], "deny": []},
        },
        "expired_at": stamp_or_null(payment.expired_at),
    }


def _colour_form(colour: str) -> JsonObject:
    red, green, blue = parts(colour)
    return {"hex": colour, "rgb": f"{red}, {green}, {blue}"}


def accent(appearance: JsonObject) -> tuple[str, str]:
    """A session's accent colour, or the default, and a readable text colour on it, both as `#rrggbb`."""
    colour = full(str(appearance.get("color") or "#1f6feb"))
    return colour, text_on(colour)


def _appearance(given: JsonObject) -> JsonObject:
    colour, contrast = accent(given)
    badge, lang = given.get("display_platform_badge"), given.get("lang")
    return {
        "template": "default",
        "color": {"primary": _colour_form(colour), "contrast": _colour_form(contrast)},
        "font": {"value": "system", "display_name": "System", "category": "sans-serif", "url": None},
        "border_style": "rounded",
        "display_platform_badge": True if badge is None else badge,
        "brand": given.get("brand"),
        "icon_url": given.get("icon_url"),
        "lang": lang if isinstance(lang, str) else "en",
    }


def checkout_form(session: CheckoutRecord, host: str) -> JsonObject:
    """`data` of the two checkout operations: the session and its payment."""
    payment = session.payment
    return {
        "checkout": {
            "id": session.id,
            "url": f"{host}/checkout/{session.id}",
            "restriction": {"country": country_form(session.country), "phone": session.phone},
            "appearance": _appearance(session.appearance),
            "expires_at": stamp(payment.expires_at),
            "created_at": stamp(payment.created_at),
        },
        "payment": payment_form(payment),
    }


def refund_availability_form(payment: PaymentRecord) -> JsonObject:
    """The JSON of a refund availability: the amount left once refunds in flight are reserved."""
    left = payment.refundable
    method = next((a.method for a in payment.attempts if a.status == "completed"), "")
    types = ["full", "partial"] if left > currency(payment.currency).unit else ["full"]
    by = "gateway" if method_category(method) == "card" else "payout"
    is_paid = payment.completed_at is not None
    why = "Nothing is left to refund." if is_paid else "The payment has not been completed."
    return {
        "is_refundable": left > 0,
        "refundable_amount": amount_form(left, payment.currency),
        "refunded_amount": amount_form(payment.refunded, payment.currency),
        "pending_amount": amount_form(payment.reserved, payment.currency),
        "has_pending_refund": payment.reserved > 0,
        "available_types": types if left > 0 else [],
        "execution_method": by if left > 0 else None,
        "unavailable_reason": None if left > 0 else why,
    }
