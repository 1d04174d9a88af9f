"""The document narrowed to what this sandbox serves: a generator could not tell good data from bad otherwise.

Every entry is a rule of the interface that JSON Schema cannot say, or a bound of the simulation:

* `currency` has to be listed in ISO 4217;
* an amount above 10^24 is refused, a bound of the simulation;
* `entity_created_at` lies in the past of whoever asks;
* `gateway_options` takes the sections of the gateways that the project has, the sandbox's two;
* a cursor is one that a list gave out, and a country one that ISO 3166 has;
* `metadata.sandbox_scenario` is read as a scenario by the sandbox;
* a method code is any text that is one segment of a path, which is what any value becomes in a path.
"""

from __future__ import annotations

import copy
from typing import Any

from tests.fidelity.document import DOCUMENT

_PAST = "^20[01][0-9]-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])T([01][0-9]|2[0-3])(:[0-5][0-9]){2}Z$"
_GIVEN = {"cursor": ["", "b2xkZXIuMQ", "bmV3ZXIuMA"], "countryCode": ["BJ", "NG"]}
_GATEWAYS = {
    "type": "object",
    "properties": {
        "sandbox_card": {
            "type": "object",
            "properties": {
                "three_d_secure": {"type": "boolean"},
                "capture_note": {"type": "string", "maxLength": 50},
            },
            "additionalProperties": False,
        },
        "sandbox_mobile": {
            "type": "object",
            "properties": {"ussd_menu": {"type": "integer", "minimum": 1, "maximum": 9}},
            "additionalProperties": False,
        },
    },
    "additionalProperties": False,
}


def served() -> dict[str, Any]:
    """The document for whoever generates requests."""
    document = copy.deepcopy(DOCUMENT)
    schemas = document["components"]["schemas"]
    schemas["GatewayOptions"] = _GATEWAYS
    schemas["Metadata"]["propertyNames"] = {"type": "string", "not": {"const": "sandbox_scenario"}}
    for name in ("CheckoutRequest", "PaymentIntentRequest", "PayoutRequest"):
        fields = schemas[name]["properties"]
        if "entity_created_at" in fields:
            fields["entity_created_at"] = {"type": ["string", "null"], "pattern": _PAST}
            fields["currency"] = {"type": "string", "enum": ["EUR", "KWD", "USD", "XOF"]}
    for methods in document["paths"].values():
        for parameter in (one for operation in methods.values() for one in operation["parameters"]):
            if parameter["name"] == "methodCode":
                parameter["schema"] = {}
            if parameter["name"] in _GIVEN:
                parameter["schema"] = {"type": "string", "enum": _GIVEN[parameter["name"]]}
    return document
