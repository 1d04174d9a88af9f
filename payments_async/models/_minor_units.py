"""Decimals of each currency, by ISO 4217. Written by `python -m tools.tables`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

PUBLISHED: Final = "2026-01-01"  # date of the list

_CODES: Final = {
    0: """
        BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF
    """,
    2: """
        AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BMD BND BOB BOV BRL BSD BTN BWP BYN BZD CAD CDF CHE
        CHF CHW CNY COP COU CRC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GTQ GYD
        HKD HNL HTG HUF IDR ILS INR IRR JMD KES KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL MGA MKD MMK
        MNT MOP MRU MUR MVR MWK MXN MXV MYR MZN NAD NGN NIO NOK NPR NZD PAB PEN PGK PHP PKR PLN QAR RON RSD
        RUB SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TOP TRY TTD TWD TZS UAH
        USD USN UYU UZS VED VES WST XAD XCD XCG YER ZAR ZMW ZWG
    """,
    3: """
        BHD IQD JOD KWD LYD OMR TND
    """,
    4: """
        CLF UYW
    """,
}

MINOR_UNITS: Final[Mapping[str, int]] = {
    code: decimals for decimals, codes in _CODES.items() for code in codes.split()
}
"""Decimals by currency; without those that have no minor units, such as XAU."""


def decimals_of(currency: str) -> int | None:
    """A currency's number of decimals; None if the list has no such currency, or gives it no minor units."""
    return MINOR_UNITS.get(currency)
