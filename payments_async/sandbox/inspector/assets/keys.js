// Keys: / searches, j and k move through the rows, ? shows them all. Never while something is typed.
const ROW = "main :is(.log li:not(.day), .card)";
const help = document.getElementById("keys");

let place = 0; // of the row that was reached last: newer rows may push it off the page
function move(step) {
  const links = [...document.querySelectorAll(ROW)].map((row) => row.querySelector("a")).filter(Boolean);
  const here = document.activeElement.closest(ROW);
  const at = links.findIndex((link) => link.closest(ROW) === here);
  place = Math.min(links.length - 1, Math.max(0, at < 0 ? place : at + step));
  const next = links[place];
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
  } else if (Object.hasOwn(acts, key)) {
    event.preventDefault();
    acts[key]();
  }
});
