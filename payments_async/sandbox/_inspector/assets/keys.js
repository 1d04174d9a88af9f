// Keys: Ctrl-K goes anywhere, / searches, j and k move through the rows, ? shows them all. Never while something is typed.
const ROW = "main :is(.log li:not(.day), .card, .records tbody tr):has(a)";
const help = document.getElementById("keys");
const on = help.querySelector("input");
let kept = {};
try { kept = localStorage; } catch { /* the browser forbids it: for this page only */ }
on.checked = kept.keys !== "off";
on.addEventListener("change", () => { kept.keys = on.checked ? "on" : "off"; });
document.getElementById("help").addEventListener("click", () => help.showModal());

let place = 0; // newer rows may push the reached one off the page
function move(step) {
  const rows = [...document.querySelectorAll(ROW)];
  const at = rows.indexOf(document.activeElement.closest(ROW));
  place = Math.max(0, Math.min(rows.length - 1, at < 0 ? place : at + step));
  const next = rows[place]?.querySelector("summary, a");
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
}

const acts = {
  "/": () => {
    const box = document.querySelector("#find, .filters input, .filters select");
    box?.focus();
    box?.select?.();
  },
  j: () => move(1),
  k: () => move(-1),
  "?": () => help.showModal(),
  Escape: () => document.activeElement.blur(),
};

// Pages by their name, records by their id, and searches for any other text; Enter follows the first.
const go = document.getElementById("go"), wanted = go.querySelector("input");
const HOME = `${location.pathname.split("/_sandbox/")[0]}/_sandbox/`;
const PAGES = { po_: "payouts", pi_: "payments", pa_: "payments", cs_: "payments", wh_: "webhooks", req: "requests" };

function goals() {
  const text = wanted.value.trim(), found = encodeURIComponent(text), pages = document.querySelectorAll("nav a");
  const links = [...pages].filter((page) => page.textContent.toLowerCase().includes(text.toLowerCase()))
    .map((page) => [page.firstChild.textContent, page.href]);
  if (/^(p[oia]|cs|wh|req)_\w{8,}$/.test(text)) links.unshift([`Open ${text}`, `${HOME}${PAGES[text.slice(0, 3)]}/${text}`]);
  else if (text) links.push([`Payouts named ${text}*`, `${HOME}payouts?name=${found}*`], [`Payments named ${text}*`, `${HOME}payments?name=${found}*`]);
  if (text) links.push([`Search the log for ${text}`, `${HOME}?find=${found}`]);
  go.querySelector("ul").replaceChildren(...links.map(([name, href]) => {
    const item = document.createElement("li");
    item.append(Object.assign(document.createElement("a"), { textContent: name, href }));
    return item;
  }));
}

function openGoals() {
  wanted.value = "";
  goals();
  go.showModal();
}

wanted.addEventListener("input", goals);
document.getElementById("find-any").addEventListener("click", openGoals);
go.addEventListener("keydown", (event) => {
  const stops = [wanted, ...go.querySelectorAll("a")], at = stops.indexOf(document.activeElement);
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (event.key === "Enter" && at === 0) stops[1]?.click();
  else if (step) stops[(at + step + stops.length) % stops.length].focus();
  else return;
  event.preventDefault();
});

addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key === "k" && !document.querySelector("dialog[open]")) {
    event.preventDefault();
    openGoals();
  }
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || help.open || go.open) return;
  const { key, target } = event;
  if (target.closest?.("input, select, textarea")) {
    if (key === "Escape") target.blur();
  } else if (Object.hasOwn(acts, key) && (on.checked || key === "Escape")) {
    event.preventDefault();
    acts[key]();
  }
});
