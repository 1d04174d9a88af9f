"""Colours as `#rrggbb`, and what can be read on them (the contrast ratio of WCAG 2, from 1 to 21)."""

from __future__ import annotations

BLACK, WHITE = "#000000", "#ffffff"
_SHADES = 20


def parts(colour: str) -> tuple[int, int, int]:
    """Red, green and blue, 0 to 255 each."""
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def full(text: str) -> str:
    """A hex colour in its long form: `FE0` is `#ffee00`, and `#ffee0080` too, because all are opaque here."""
    digits = text.removeprefix("#").lower()
    return "#" + ("".join(digit * 2 for digit in digits) if len(digits) == 3 else digits[:6])


def contrast(one: str, other: str) -> float:
    """The contrast ratio of two colours."""
    dark, light = sorted((_luminance(one), _luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def text_on(colour: str) -> str:
    """Black or white, whichever reads better on `colour`: never below a ratio of 4.5."""
    return max(WHITE, BLACK, key=lambda text: contrast(text, colour))


def visible_on(ground: str, colour: str, least: float = 3.0) -> str:
    """`colour`, moved away from `ground` in small shades until it stands out by `least`."""
    return next(filter(lambda shade: contrast(shade, ground) >= least, _shades(colour, text_on(ground))))


def _shades(colour: str, end: str) -> list[str]:
    """From one colour to another."""
    ways = list(zip(parts(colour), parts(end), strict=True))
    return [
        "#" + "".join(f"{a + (b - a) * step // _SHADES:02x}" for a, b in ways) for step in range(_SHADES + 1)
    ]


def _luminance(colour: str) -> float:
    red, green, blue = (_linear(part / 255) for part in parts(colour))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _linear(part: float) -> float:
    return part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
