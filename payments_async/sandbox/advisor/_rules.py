"""The rules about money, in one table: for the Advisor, and for the ledger of the pytest plugin.

Each is about money that moves twice or is believed without proof, or about an answer that was lost.
`docs/interface.md`: Errors, Idempotency, Events (rule 3), Authentication (rule 6).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

import attrs

from .._journal import WebhookTried
from .._records.idempotency import LIFETIME
from ._evidence import AdvisorEvidence, Finding, ObservedRequest, grouped, ids, seconds_between, shown_name

READ_BACK_WITHIN: Final = 60.0
"""Seconds of sandbox time in which the record of an accepted delivery should have been read."""

_AGAIN: Final = 30
"""Seconds: the same once more within them is a retry; later it may be another customer's."""
_FINAL_EVENTS: Final = ("completed", "failed", "expired", "refunded")
_BROWSER: Final = ("origin", "sec-fetch-site")
"""Headers that browsers add and no server's HTTP library does."""


@attrs.frozen
class Case:
    """What shows one break of a rule."""

    text: str
    subject: str
    requests: Sequence[ObservedRequest] = ()
    webhooks: Sequence[WebhookTried] = ()


@attrs.frozen
class MoneyRule:
    """One rule: its heading, why it matters, what to do instead, and the function that finds its breaks."""

    heading: str
    why: str
    fix: str
    cases: Callable[[AdvisorEvidence], Iterable[Case]]


def judge(evidence: AdvisorEvidence) -> list[Finding]:
    """Every break of every rule, in the order of the table."""
    return [
        Finding(
            name,
            case.text,
            rule.why,
            rule.fix,
            case.subject,
            ids(case.requests),
            tuple(tried.webhook_id for tried in case.webhooks),
        )
        for name, rule in RULES.items()
        for case in rule.cases(evidence)
    ]


def _repeated(
    requests: Iterable[ObservedRequest], by: Callable[[ObservedRequest], object]
) -> Iterator[list[ObservedRequest]]:
    """Groups of two requests and more for which `by` gives the same."""
    return (same for same in grouped(requests, by).values() if len(same) > 1)


def _posted_without_key(evidence: AdvisorEvidence) -> Iterator[Case]:
    """The same creating POST more than once, without an idempotency key.

    What was refused may be sent anew, but for a reference that was taken: the first try may have been lost.
    """
    bare = (
        sent
        for sent in evidence.requests
        if sent.creates
        and sent.log.idempotency_key is None
        and sent.body
        and (not sent.moved_nothing or sent.was_duplicate)
    )
    for same in _repeated(bare, lambda sent: (sent.log.key, sent.log.path, sent.body)):
        for tries in _retries(same):
            text = f"{tries[0].words} was sent {len(tries)} times without an idempotency key"
            yield Case(text, tries[0].subject, tries)


def _retries(same: Sequence[ObservedRequest]) -> Iterator[list[ObservedRequest]]:
    """The longest runs of equal requests in which each is a retry of the one before it."""
    run = [same[0]]
    for earlier, later in pairwise(same):
        # it has a name, or the first was in doubt, or it came soon: else it may be the next customer's
        is_retry = later.reference or earlier.in_doubt or seconds_between(earlier, later) < _AGAIN
        if not is_retry:
            if len(run) > 1:
                yield run
            run = []
        run.append(later)
    if len(run) > 1:
        yield run


def _retried_with_new_key(evidence: AdvisorEvidence) -> Iterator[Case]:
    """One body under several idempotency keys, although the outcome of a try was not known."""
    open_ones = (
        sent
        for sent in evidence.requests
        if sent.creates and sent.log.idempotency_key and sent.body and not sent.moved_nothing
    )
    for same in _repeated(open_ones, lambda sent: (sent.log.key, sent.log.path, sent.body)):
        last_of_keys = {sent.log.idempotency_key: sent for sent in same}.values()
        # two customers may buy the same: only a key that was given up in doubt makes the next one a retry
        if doubts := [sent for sent in last_of_keys if sent.in_doubt and sent is not same[-1]]:
            text = f"{doubts[0].words} was in doubt, and {same[-1].words} sent its body under a new key"
            yield Case(text, same[0].subject, same)


def _key_reused(evidence: AdvisorEvidence) -> Iterator[Case]:
    """One idempotency key with several bodies: the later ones are no requests of their own."""
    keyed = (sent for sent in evidence.requests if sent.creates and sent.log.idempotency_key and sent.body)
    for alike in _repeated(keyed, lambda sent: sent.name):
        first = alike[0]
        others: list[ObservedRequest] = []
        for sent in alike[1:]:
            if sent.log.at - first.log.at >= LIFETIME:  # the key has expired, and stands for a new request
                yield from _differing(first, others)
                first, others = sent, []
            elif (sent.log.path, sent.body) != (first.log.path, first.body):
                others.append(sent)
        yield from _differing(first, others)


def _differing(first: ObservedRequest, others: Sequence[ObservedRequest]) -> Iterator[Case]:
    # a body may be corrected under the key of a refusal that was not kept
    reused = [sent for sent in others if sent.reuses_a_key or not first.moved_nothing]
    if reused:
        text = f"{first.words} and {reused[0].words} differ under one idempotency key"
        yield Case(text, first.reference or str(first.log.idempotency_key), [first, *reused])


def _paid_again(evidence: AdvisorEvidence) -> Iterator[Case]:
    """Equal payouts of which the later may be the first one again, whatever their keys.

    The first had no reference, or its answer had not arrived. One that failed moved no money.
    """
    told = [
        set(ids(case.requests))
        for rule in (_posted_without_key, _retried_with_new_key)
        for case in rule(evidence)
    ]
    answers = _first_answers(evidence)
    payouts = (sent for sent in evidence.requests if sent.made and sent.log.operation == "payouts.create")
    for alike in _repeated(payouts, lambda sent: sent.payment):
        same: dict[ObservedRequest, None] = {}
        before: list[ObservedRequest] = []
        for later in alike:
            doubles = [first for first in before if _is_untold(first, later, answers)]
            if doubles:
                same |= dict.fromkeys([*doubles, later])
                before = [first for first in before if first not in doubles[1:]]  # one tells of the next
            has_failed = any((record, "failed") in evidence.reached for record in later.records)
            if not has_failed and (later.reference is None or not later.answered):
                before.append(later)
        if same and not any(set(ids(same)) <= told_ids for told_ids in told):
            first, *_, last = same
            lost = "no references tell them apart"
            if first.reference is not None and last.reference is not None:
                lost = "the answer to the first had not arrived"
            text = f"{first.words} and {last.words} are one payout twice: {lost}"
            yield Case(text, first.subject, sorted(same, key=lambda sent: sent.seq))


def _is_untold(
    first: ObservedRequest, later: ObservedRequest, answers: Mapping[tuple[str | None, str | None], int]
) -> bool:
    """True if nothing tells `later` from `first`: no reference, or none of which the sender could know."""
    is_answered = first.answered or answers.get(first.name, later.seq) < later.seq
    return first.reference is None or not is_answered


def _first_answers(evidence: AdvisorEvidence) -> dict[tuple[str | None, str | None], int]:
    """When the outcome of a payout was known first, by its name: its answer, or that to a repeat of it."""
    answers: dict[tuple[str | None, str | None], int] = {}
    for sent in evidence.requests:
        if sent.answered and sent.log.idempotency_key is not None:
            answers.setdefault(sent.name, sent.seq)
    return answers


def _reference_refused(evidence: AdvisorEvidence) -> Iterator[Case]:
    """A payout requested again after its sender was told that its reference is taken, so that it exists.

    The very same bytes are no new request: a program that is started again, or several that begin at once.
    Their reference lets only one be paid.
    """
    payouts = [sent for sent in evidence.requests if sent.log.operation == "payouts.create"]
    if not any(sent.was_duplicate for sent in payouts):
        return
    reads = [sent.seq for sent in evidence.requests if sent.log.operation == "payouts.list" and sent.reads]
    equal = grouped((sent for sent in payouts if sent.made), lambda sent: sent.payment)
    for same in _repeated(payouts, lambda sent: (sent.log.key, sent.reference)):
        first = next((sent for sent in same if sent.made), None)
        refused = next(
            (sent for sent in same if sent.was_duplicate and first and sent.name != first.name), None
        )
        if first is None or refused is None or refused.reference is None:
            continue
        read = next((seq for seq in reads if seq > refused.seq), None)
        unread = [sent for sent in equal.get(refused.payment, ()) if read is None or sent.seq < read]
        others = (sent for sent in (*same, *unread) if sent.name != first.name)
        again = [sent for sent in others if sent.seq > refused.seq and sent.body != refused.body]
        if again:
            text = f"{again[0].words} came after the reference of {refused.words} was refused"
            yield Case(text, refused.reference, [first, refused, *dict.fromkeys(again)])


def _collected_twice(evidence: AdvisorEvidence) -> Iterator[Case]:
    """Two payments for one `entity_id` that were both completed, and not refunded."""
    made = (sent for sent in evidence.requests if sent.made and isinstance(sent.fields.get("entity_id"), str))
    kept = {record for record, status in evidence.reached if status == "completed"}
    kept -= {record for record, status in evidence.reached if status == "refunded"}
    intents = {record for record in kept if record.startswith("pi_")}
    collected = [sent for sent in made if not intents.isdisjoint(sent.records)]
    for same in _repeated(collected, lambda sent: (sent.log.key, sent.fields["entity_id"])):
        entity = str(same[0].fields["entity_id"])
        yield Case(f"{len(same)} payments were collected for the entity {shown_name(entity)}", entity, same)


def _webhook_trusted(evidence: AdvisorEvidence) -> Iterator[Case]:
    """Deliveries about an end that were accepted, and their record not read after it."""
    due = [
        tried
        for tried in evidence.accepted.values()
        if tried.event.rpartition(".")[2] in _FINAL_EVENTS and evidence.until >= tried.at + READ_BACK_WITHIN
    ]
    read_at: dict[str, float] = {}
    for sent in evidence.requests if due else ():
        if sent.reads:
            for record in (*sent.path_ids, *sent.shown):
                read_at[record] = max(sent.log.at, read_at.get(record, sent.log.at))
    unread = [tried for tried in due if read_at.get(tried.record_id, -1.0) < _ended_at(evidence, tried)]
    for record, tries in grouped(unread, lambda tried: tried.record_id).items():
        events = " and ".join(dict.fromkeys(tried.event for tried in tries))
        yield Case(f"{events} accepted, and {record} never read back", record, webhooks=tries)


def _ended_at(evidence: AdvisorEvidence, tried: WebhookTried) -> float:
    """When the record came to its end: a program that polls may have read it before the delivery came."""
    return min(tried.at, evidence.reached.get((tried.record_id, tried.event.rpartition(".")[2]), tried.at))


def _key_in_browser(evidence: AdvisorEvidence) -> Iterator[Case]:
    """Requests to the API that a browser's script sent, or asked to send with a key."""
    from_browser = (sent for sent in evidence.requests if _from_browser(sent))
    for where, sent in grouped(from_browser, lambda one: one.log.headers.get("origin", "a page")).items():
        yield Case(f"{sent[0].log.request_id} came from a browser ({where[:80]})", where[:80], sent)


def _from_browser(sent: ObservedRequest) -> bool:
    headers = sent.log.headers
    # a person who opens an address of the API sends no key
    if not any(name in headers for name in _BROWSER) or headers.get("sec-fetch-mode") == "navigate":
        return False
    # a preflight carries no key itself; it says that the page is about to send one
    if sent.log.method == "OPTIONS":
        return "authorization" in headers.get("access-control-request-headers", "").lower()
    return True


RULES: Final[Mapping[str, MoneyRule]] = {
    "posted_without_key": MoneyRule(
        "A POST was sent again without an idempotency key",
        "Each repeat can move money again, or makes another page to pay on: the service cannot know that it "
        "is the same request.",
        "send the repeat under the first one's X-Idempotency-Key, as the SDK does by itself",
        _posted_without_key,
    ),
    "retried_with_new_key": MoneyRule(
        "A lost answer was retried under a new idempotency key",
        "A new key makes a retry a new request: what the first one did is done a second time.",
        "make the key once, before the first try, and send it with every try",
        _retried_with_new_key,
    ),
    "key_reused": MoneyRule(
        "One idempotency key was sent with several bodies",
        "Another body under a key is refused (409) or gets the first answer: what it asks for is not done.",
        "use an idempotency key for one request; without one, the SDK makes its own",
        _key_reused,
    ),
    "paid_again": MoneyRule(
        "A payout was made again",
        "Money has left twice. An idempotency key tells a payout from its repeat for a day alone.",
        "give each payout a reference of its own, and call client.resolve(error) after an OutcomeUnknown, "
        "before anything is sent anew",
        _paid_again,
    ),
    "reference_refused": MoneyRule(
        "A payout was requested again after its reference was refused",
        "A taken reference has its payout: another request for it pays it twice, or is refused again.",
        "look the payout up: client.payouts.find(reference)",
        _reference_refused,
    ),
    "collected_twice": MoneyRule(
        "Two payments were collected for one order",
        "The payer has paid twice.",
        "keep the order's first payment, and read it back before you make another",
        _collected_twice,
    ),
    "webhook_trusted": MoneyRule(
        "A webhook was accepted, and its record never read back",
        "Deliveries are not signed: everyone who knows the address can claim that a payment was made.",
        "take only the id from a delivery, and read the record through the API before acting on it",
        _webhook_trusted,
    ),
    "key_in_browser": MoneyRule(
        "The secret key was used in a browser",
        "Everyone who opens the page can read the secret key, and a key moves money.",
        "call the API from your server, give the browser checkout.url only, and rotate an exposed key",
        _key_in_browser,
    ),
}
"""Each rule, by the name with which a test may allow it."""
