// A table that is wider than the window can be reached with the tab key, and then scrolled with the arrow keys.
const tables = new ResizeObserver((entries) => {
  entries.forEach(({ target }) => {
    target.tabIndex = target.scrollWidth > target.clientWidth ? 0 : -1;
  });
});
// Each block of code is a landmark of its own; a screen reader needs a name for each.
new MutationObserver(() => {
  document.querySelectorAll(".md-typeset__scrollwrap").forEach((table) => tables.observe(table));
  document.querySelectorAll(".md-code__nav:not([aria-label])").forEach((block, number) => {
    block.setAttribute("aria-label", `Code ${number + 1}`);
  });
}).observe(document.documentElement, { childList: true, subtree: true });
