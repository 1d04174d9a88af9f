"""Every page at the widths that people have, and on paper: controls can be reached, numbers are whole.

The inspector, the hosted checkout, the page of a batch and its exported report. A sheet of paper is a column
as wide and as high as what is printed on A4: the browser breaks both by the same rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pytest

from payments_async.bulk import Outcome
from payments_async.sandbox import Sandbox, VirtualClock
from tests.browser.test_checkout_states import STATES, Payer
from tests.browser.visitor import BROWSER, Visit, Visitor
from tests.sandbox.inspector.test_pages import lived
from tests.sandbox.raw_requests import Api
from tests.support.batch_pages import (
    RUNNING,
    GivenFeed,
    PageFigures,
    cause,
    causes,
    figures,
    page_of,
    row,
    served,
    states,
)

pytestmark = BROWSER
WIDTHS = (390, 768, 1024, 1280, 1440)
SHEET = (717, 1045)
"""What is printed on a sheet of A4, in CSS pixels."""

FAULTS = """(sheet) => {
  const faults = [], wide = sheet ? sheet[0] : document.documentElement.clientWidth;
  const seen = (it) => it.checkVisibility({visibilityProperty: true}) && !hides(it);
  const hides = (it) => it && (getComputedStyle(it).clipPath !== 'none' || hides(it.parentElement));
  const within = (box, it) => {
    const left = sheet ? Math.floor((box.left + 1) / wide) * wide : 0;
    if (box.left < left - 1 || box.right > left + wide + 1) return false;
    for (let outer = it; outer !== document.body; outer = outer.parentElement) {
      const {overflowX, overflowY} = getComputedStyle(outer), edge = outer.getBoundingClientRect();
      if (overflowX !== 'visible' && (box.left < edge.left - 1 || box.right > edge.right + 1)) return false;
      const is_cut = overflowY === 'hidden' || (sheet && overflowY !== 'visible');
      if (is_cut && (box.top < edge.top - 1 || box.bottom > edge.bottom + 1)) return false;
    }
    return true;
  };
  for (const it of document.querySelectorAll('a[href], button, input:not([type=hidden]), select, summary')) {
    if (!sheet && seen(it) && !within(it.getBoundingClientRect(), it.parentElement))
      faults.push(`outside the window: ${it.outerHTML.slice(0, 90)}`);
  }
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const range = document.createRange();
  while (texts.nextNode()) {
    const node = texts.currentNode, it = node.parentElement;
    if (!seen(it) || it.closest('script, style, datalist, select')) continue;
    for (const found of node.data.matchAll(/[0-9][0-9.,:]*/g)) {
      range.setStart(node, found.index);
      range.setEnd(node, found.index + found[0].length);
      const boxes = [...range.getClientRects()].filter((box) => box.width);
      if (!boxes.every((box) => within(box, it)))
        faults.push(`clipped: ${found[0]} in ${node.data.trim().slice(0, 60)}`);
      const is_sum = /^[0-9]{1,3}(,[0-9]{3})+|^[0-9]+[.][0-9]{2}/.test(found[0]);
      if (is_sum && new Set(boxes.map((box) => Math.round(box.top))).size > 1)
        faults.push(`cut in two: ${found[0]}`);
    }
  }
  if (!sheet) return faults;
  const place = (box) => Math.floor((box.left + 1) / wide);
  for (const heading of document.querySelectorAll('h1, h2, h3, thead')) {
    if (!seen(heading)) continue;
    texts.currentNode = heading;
    while (texts.nextNode()) {
      const node = texts.currentNode;
      if (heading.contains(node) || !node.data.trim() || !seen(node.parentElement)) continue;
      range.selectNodeContents(node);
      const own = [...heading.getClientRects()].pop(), [next] = range.getClientRects();
      if (next && place(next) > place(own)) faults.push(`alone on its sheet: ${heading.textContent}`);
      break;
    }
  }
  return faults;
}"""
SHEETS = """([width, height]) => Object.assign(document.documentElement.style, {
  columns: `${width}px auto`, columnGap: 0, columnFill: 'auto', width: `${width}px`, height: `${height}px`
})"""


async def fits(visitor: Visitor, name: str) -> None:
    """The page is whole at every width and on paper, wherever a sheet ends."""
    faults = dict[str, list[str]]()
    for width in WIDTHS:
        await visitor.looks("light", width)
        faults[f"{name} at {width}"] = await visitor.page.evaluate(FAULTS)
    faults[f"{name} on paper"] = await on_paper(visitor)
    await visitor.page.emulate_media(media="screen")
    await visitor.measure("document.documentElement.removeAttribute('style')")
    assert {place: found for place, found in faults.items() if found} == {}


async def on_paper(visitor: Visitor) -> list[str]:
    """What is wrong on paper. Sheets of several heights bring each heading to the end of one."""
    wide, high = SHEET
    await visitor.page.emulate_media(media="print")
    await visitor.page.set_viewport_size({"width": wide, "height": high})
    faults = list[str]()
    for shorter in range(0, 400, 23):
        await visitor.page.evaluate(SHEETS, [wide, high - shorter])
        faults += await visitor.page.evaluate(FAULTS, [wide, high - shorter])
    return sorted({*faults})


# The inspector


@pytest.fixture
def paths(sandbox: Sandbox, api: Api) -> list[str]:
    """The addresses of all pages, with long names and large sums."""
    found = lived(sandbox, api)
    order = "Two seats, Cotonou to Parakou, on 14 March 2026"
    for outcome in ("action:collect_otp", "fail:CUSTOMER_DECLINED", "complete"):
        made = api.checkout(amount=987_654_321.25, currency="USD", description=order).data["checkout"]
        payment = sandbox.pay(made["id"], outcome=outcome, phone="+22990000077")
        found.append(f"payments/{payment.id}")
    for state in ("manual", "fail:INSUFFICIENT_FUNDS immediate"):
        made = api.payout(
            amount=9_876_543_210, reference=f"salaries-{state}-" * 3, metadata={"sandbox_scenario": state}
        ).data
        found.append(f"payouts/{made['id']}")
    sandbox.wait_for_webhooks()
    return found


async def test_the_pages_of_the_inspector_are_whole(sandbox: Sandbox, paths: list[str], visit: Visit) -> None:
    visitor = await visit()
    with Sandbox(clock=VirtualClock.frozen()) as unused:
        for here, path in [(unused, ""), *((sandbox, path) for path in paths)]:
            await visitor.open(f"{here.origin}/_sandbox/{path}")
            await fits(visitor, f"inspector {path or 'log'}")


# The checkout


@pytest.mark.parametrize("name", STATES)
async def test_the_pages_of_the_checkout_are_whole(
    name: str, sandbox: Sandbox, api: Api, visit: Visit
) -> None:
    state = STATES[name]
    body = {**state.body, "metadata": {"sandbox_scenario": state.scenario} if state.scenario else None}
    payer = Payer(api, api.checkout(**body).data["checkout"]["id"])
    state.act(payer)
    visitor = await visit()
    await visitor.open(f"{sandbox.origin}{payer.path(state.part)}")
    await fits(visitor, name)
    visitor.errors.clear()  # of the one page that is missing


# The page of a batch


def large() -> PageFigures:
    """Sums of many digits, long names, and more causes than a sheet has room for."""
    long = [row(n, row_key=f"Ada Lovelace {n} " * 6, amount=Decimal("1234567890.12")) for n in range(1, 40)]
    groups = [cause(Outcome.FAILED, 90, *long[n : n + 3], reason=f"Reason {n}") for n in range(0, 39, 3)]
    return figures({**RUNNING, "arrived": 51_200_000}, *causes(), *groups, currencies=3, findings=())


BATCHES: Mapping[str, Any] = {
    **{name: states()[name] for name in ("running", "currencies", "failed", "complete", "conflict")},
    "large": large(),
}


@pytest.mark.parametrize("name", BATCHES)
async def test_the_page_of_a_batch_and_its_report_are_whole(name: str, visit: Visit) -> None:
    visitor = await visit()
    async with served(GivenFeed(BATCHES[name])) as shown:
        await visitor.open(shown.link)
        await fits(visitor, f"batch {name}")
        await visitor.page.close()  # before its server
    visitor = await visit()
    await visitor.page.set_content(page_of(BATCHES[name], has_script=False))
    await fits(visitor, f"report {name}")


async def test_a_report_has_its_certificate_on_the_first_sheet(visit: Visit) -> None:
    visitor = await visit()
    await visitor.page.set_content(page_of(large(), has_script=False))
    await on_paper(visitor)
    await visitor.page.evaluate(SHEETS, [*SHEET])
    certificate = await visitor.page.get_by_role("heading", name="Certified").bounding_box()
    assert certificate is not None
    assert certificate["x"] < SHEET[0]
    sheets = await visitor.measure("document.documentElement.scrollWidth") / SHEET[0]
    assert sheets > 2


@pytest.mark.parametrize("width", [390, 1280])
async def test_what_did_not_arrive_and_what_to_do_is_on_the_first_screen(width: int, visit: Visit) -> None:
    visitor = await visit(width=width, height=844)
    await visitor.page.set_content(page_of(states()["failed"], has_script=False))
    said = visitor.page.get_by_text("did not arrive: 50 failed, 40 rejected, 8 cancelled. What to do: ")
    box = await said.bounding_box()
    assert box is not None
    assert box["y"] + box["height"] < 844
