// Keys: / searches, j and k move through the rows, ? shows them all. Never while something is typed.
const ROW = "main :is(.log li:not(.day), .card):has(a)";
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
  const next = rows[place]?.querySelector("a");
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

addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || help.open) return;
  const { key, target } = event;
  if (target.closest?.("input, select, textarea")) {
    if (key === "Escape") target.blur();
  } else if (Object.hasOwn(acts, key) && (on.checked || key === "Escape")) {
    event.preventDefault();
    acts[key]();
  }
});
