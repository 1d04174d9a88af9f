"""The scenario vocabulary and its one parser.

A scenario is words with spaces, commas or semicolons between them::

    outcome  complete | fail:CODE | hang | expire | action:<type> | failover:<n>
    timing   after=<duration> | reads=<n> | manual | immediate
    fault    http:<status> | 429[:seconds] | slow:<duration> | hang | reset | lost_request | lost_response
             | cut_body | bad_json | wrong_type | empty        each *n times (1), @k after k (0)
    webhook  ok | drop | delay:<duration> | duplicate[:n] | reorder | before_response | forge

`http:503*2 lost_response` is a script: two 503s, then one lost response, then the ordinary answer. `hang` is
an outcome where the text belongs to a record and a fault where it belongs to a request. Webhook words hold
for every delivery of the record that is created (`_webhooks/webhook.py`). Durations: `5`, `5s`, `500ms`,
`2m`, `1h`.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Literal, TypeVar

import attrs

T = TypeVar("T")
Sense = Literal["outcome", "fault"]

ACTION_TYPES = (
    "redirect_to_url",
    "embed_iframe",
    "collect_otp",
    "approve_on_phone",
    "scan_qr_code",
    "display_payment_instructions",
    "complete_with_sdk",
)
"""Gap K, without `none`, which is no action."""

_LONGEST = 4_000  # characters of a scenario at most, as any request may carry one
MOST_TIMES = 1_000_000  # the most requests or records that one rule counts
LONGEST_DURATION = 10 * 366 * 86_400.0  # seconds, which are ten years
MOST_COPIES = 20  # the most copies of a delivery that `duplicate` sends
MOST_FAILOVERS = 20  # the most failovers of an attempt

_DURATION = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)(ms|s|m|h)?", re.ASCII)
_SECONDS = {None: 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_CODE = re.compile(r"[A-Z][A-Z0-9_]{0,63}")
_WHOLE = re.compile(r"[1-9]\d{0,6}", re.ASCII)
_WORD = re.compile(r"([a-z_]+|429)(?:[:=]([^*@]*))?(?:\*(\d{1,6}))?(?:@(\d{1,6}))?", re.ASCII)


class UnknownWord(ValueError):
    """A text holds a word that is not in the vocabulary, or one without the argument it needs."""


@attrs.frozen
class ScenarioOutcome:
    """The outcome of a payout or an attempt. `code` belongs to `fail`, `count` to `failover`."""

    kind: str
    code: str = ""
    action: str = ""
    count: int = 0

    @property
    def word(self) -> str:
        """Its word with the argument: `fail:NO_FUNDS`."""
        argument = self.code or self.action or self.count
        return f"{self.kind}:{argument}" if argument else self.kind


@attrs.frozen
class Timing:
    """The time of an outcome: `after` so many seconds, at the n-th of `reads`, or never (`manual`)."""

    kind: Literal["after", "reads", "manual"]
    seconds: float = 0.0
    reads: int = 0

    @property
    def word(self) -> str:
        """Its word with the argument: `after=5s`."""
        if self.kind == "manual":
            return self.kind
        return f"after={self.seconds:g}s" if self.kind == "after" else f"reads={self.reads}"


@attrs.frozen
class Fault:
    """A disturbance of requests: of `times` of them (None: of all) once `after` have gone by."""

    kind: str
    seconds: float = 0.0
    status: int = 0
    times: int | None = 1
    after: int = 0

    @property
    def word(self) -> str:
        """Its word with the argument: `http:503`, `slow:0.5s`."""
        argument = {"http": str(self.status), "429": f"{self.seconds:g}s", "slow": f"{self.seconds:g}s"}
        return f"{self.kind}:{argument[self.kind]}" if self.kind in argument else self.kind

    @property
    def scheduled_word(self) -> str:
        """Its word with how often it comes: `http:503*2 after 1`."""
        often = " (every time)" if self.times is None else f"*{self.times}"
        return f"{self.word}{often}" + (f" after {self.after}" if self.after else "")

    @property
    def end(self) -> int | None:
        """The number of requests after which the fault is used up; None when never."""
        return None if self.times is None else self.after + self.times


@attrs.frozen
class HookWord:
    """A change to a record's deliveries. `seconds` belongs to `delay`, `count` to `duplicate`."""

    kind: str
    seconds: float = 0.0
    count: int = 1

    @property
    def word(self) -> str:
        """Its word with the argument: `delay:30s`."""
        argument = {"delay": f"{self.seconds:g}s", "duplicate": str(self.count)}
        return f"{self.kind}:{argument[self.kind]}" if self.kind in argument else self.kind


HookWords = tuple[HookWord, ...]


@attrs.frozen
class Scenario:
    """The parsed words of a scenario."""

    faults: tuple[Fault, ...] = ()
    outcome: ScenarioOutcome | None = None
    timing: Timing | None = None
    hooks: HookWords = ()

    @property
    def words(self) -> str:
        """Its words, with how often each fault comes."""
        ends = [part.word for part in (self.outcome, self.timing, *self.hooks) if part is not None]
        return " ".join([*(fault.scheduled_word for fault in self.faults), *ends])


NOTHING = Scenario()


def duration(text: str) -> float:
    """Parse a duration such as `500ms` to seconds; `UnknownWord` for any other text, and beyond ten years."""
    match = _DURATION.fullmatch(text)
    if match is None:
        raise UnknownWord(f"{text!r} is not a duration (5, 5s, 500ms, 2m, 1h)")
    seconds = float(match[1]) * _SECONDS[match[2]]
    if seconds > LONGEST_DURATION:
        raise UnknownWord(f"{text!r} is longer than ten years")
    return seconds


def _whole(text: str) -> int:
    if _WHOLE.fullmatch(text) is None:
        raise UnknownWord(f"{text!r} is not a whole number of at least 1")
    return int(text)


def _fail(argument: str) -> ScenarioOutcome:
    if _CODE.fullmatch(argument) is None:
        raise UnknownWord("fail needs a code in capitals, as in fail:INSUFFICIENT_FUNDS")
    return ScenarioOutcome("fail", code=argument)


def _action(argument: str) -> ScenarioOutcome:
    if argument not in ACTION_TYPES:
        raise UnknownWord(f"unknown action {argument!r} ({near(argument, ACTION_TYPES)})")
    return ScenarioOutcome("action", action=argument)


def _status(argument: str) -> Fault:
    if not (argument.isascii() and argument.isdigit() and 300 <= int(argument) <= 599):
        raise UnknownWord("http needs a status from 300 to 599, as in http:503")
    return Fault("http", status=int(argument))


def _always(value: T) -> Callable[[str], T]:
    """Make the parser of a word that takes no argument."""
    return lambda _: value


def _copies(argument: str) -> HookWord:
    count = _whole(argument or "2")
    if not 2 <= count <= MOST_COPIES:
        raise UnknownWord(f"duplicate sends 2 to {MOST_COPIES} copies, as in duplicate:3")
    return HookWord("duplicate", count=count)


_OUTCOMES: Mapping[str, Callable[[str], ScenarioOutcome]] = {
    "complete": _always(ScenarioOutcome("complete")),
    "fail": _fail,
    "hang": _always(ScenarioOutcome("hang")),
    "expire": _always(ScenarioOutcome("expire")),
    "action": _action,
    "failover": lambda argument: ScenarioOutcome("failover", count=min(_whole(argument), MOST_FAILOVERS)),
}
_TIMINGS: Mapping[str, Callable[[str], Timing]] = {
    "after": lambda argument: Timing("after", seconds=duration(argument)),
    "reads": lambda argument: Timing("reads", reads=_whole(argument)),
    "manual": _always(Timing("manual")),
    "immediate": _always(Timing("after")),
}
_PLAIN_FAULTS = (
    "hang",
    "reset",
    "lost_request",
    "lost_response",
    "cut_body",
    "bad_json",
    "wrong_type",
    "empty",
)
_FAULTS: Mapping[str, Callable[[str], Fault]] = {
    "http": _status,
    "429": lambda argument: Fault("429", seconds=duration(argument or "1")),
    "slow": lambda argument: Fault("slow", seconds=duration(argument)),
    **{word: _always(Fault(word)) for word in _PLAIN_FAULTS},
}
_HOOKS: Mapping[str, Callable[[str], HookWord]] = {
    "delay": lambda argument: HookWord("delay", seconds=duration(argument)),
    "duplicate": _copies,
    **{word: _always(HookWord(word)) for word in ("ok", "drop", "reorder", "before_response", "forge")},
}
_ARGUED = frozenset(
    {"fail", "action", "failover", "after", "reads", "http", "429", "slow", "delay", "duplicate"}
)
FAULTS = tuple(_FAULTS)
WORDS = tuple(dict.fromkeys((*_OUTCOMES, *_TIMINGS, *_FAULTS, *_HOOKS)))


def near(word: str, words: Sequence[str]) -> str:
    """List the words that resemble `word`, or all when none does, as text for a message."""
    close = difflib.get_close_matches(word, words, n=3, cutoff=0.5)
    return f"near: {', '.join(close)}" if close else f"there are: {', '.join(words)}"


def parse(text: str, sense: Sense) -> Scenario:
    """Parse the scenario in `text`; `sense` tells what `hang` means. `UnknownWord` suggests similar words."""
    if len(text) > _LONGEST:
        raise UnknownWord(f"a scenario has at most {_LONGEST:,} characters, not {len(text):,}")
    scenario = NOTHING
    for word in re.split(r"[\s,;]+", text.strip()):
        scenario = _add(scenario, word, sense)
    return scenario


def _add(scenario: Scenario, word: str, sense: Sense) -> Scenario:
    name, argument, times, after = _split(word)
    is_fault = name in _FAULTS and not (name == "hang" and sense == "outcome")
    if is_fault:
        fault = _scheduled(_FAULTS[name](argument), scenario.faults, times, after)
        return attrs.evolve(scenario, faults=(*scenario.faults, fault))
    if times or after:
        raise UnknownWord(f"*n and @k belong to faults, not to {name!r}")
    if name in _OUTCOMES:
        return attrs.evolve(scenario, outcome=_OUTCOMES[name](argument))
    if name in _HOOKS:
        return attrs.evolve(scenario, hooks=(*scenario.hooks, _HOOKS[name](argument)))
    return attrs.evolve(scenario, timing=_TIMINGS[name](argument))


def _split(word: str) -> tuple[str, str, str | None, str | None]:
    match = _WORD.fullmatch(word)
    name = match[1] if match else re.split(r"[:=*@]", word)[0]
    if match is None or name not in WORDS:
        raise UnknownWord(f"unknown scenario word {word!r} ({near(name, WORDS)})")
    if match[2] is not None and name not in _ARGUED:
        raise UnknownWord(f"{name!r} takes no argument")
    return name, match[2] or "", match[3], match[4]


def _scheduled(fault: Fault, before: Sequence[Fault], times: str | None, after: str | None) -> Fault:
    """Schedule a fault: without `@k` it begins when the one before it is used up."""
    start = before[-1].end if before else 0
    return attrs.evolve(
        fault,
        times=1 if times is None else int(times),
        after=int(after) if after is not None else MOST_TIMES if start is None else start,
    )


# Magic identifiers: a phone or account number whose last six digits are `9900NN` chooses a scenario.
# Any other ending is an ordinary number, and so is one whose outcome the record cannot have (`expire`
# for a payout).

_RECORD_WORDS: Mapping[str, str] = {
    "00": "complete immediate",
    "01": "fail:INSUFFICIENT_FUNDS",
    "02": "fail:INVALID_RECIPIENT",
    "03": "fail:CUSTOMER_DECLINED",
    "04": "fail:GATEWAY_UNAVAILABLE",
    "10": "hang",
    "11": "expire",
    "12": "action:approve_on_phone",
    "13": "action:redirect_to_url",
    "14": "action:collect_otp",
    "15": "failover:1",
}
_REQUEST_WORDS: Mapping[str, str] = {
    "20": "lost_response",
    "21": "lost_request",
    "22": "http:503",
    "23": "429:1",
    "24": "slow:2s",
    "25": "hang",
    "26": "reset",
    "27": "cut_body",
    "28": "bad_json",
    "29": "wrong_type",
    "30": "empty",
}
_HOOK_WORDS: Mapping[str, str] = {
    "40": "drop",
    "41": "delay:30s",
    "42": "duplicate",
    "43": "reorder",
    "44": "before_response",
    "45": "forge",
}
MAGIC: Mapping[str, Scenario] = {
    **{ending: parse(words, "outcome") for ending, words in _RECORD_WORDS.items()},
    **{ending: parse(words, "fault") for ending, words in _REQUEST_WORDS.items()},
    **{ending: parse(words, "outcome") for ending, words in _HOOK_WORDS.items()},
}


@lru_cache(maxsize=1024)
def magic_scenario(number: str) -> Scenario | None:
    """The scenario a phone or account number stands for, whatever separates its digits; None for most."""
    digits = re.sub(r"\D", "", number)
    return MAGIC.get(digits[-2:]) if digits[-6:-2] == "9900" else None
