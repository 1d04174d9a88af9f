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
// A link may lead to what the other side of a switch shows, and pictures above it move it when they arrive.
const show = () => {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  const block = target?.closest(".tabbed-block");
  if (block && !block.offsetParent) {
    const labels = block.closest(".tabbed-set").querySelectorAll(":scope > .tabbed-labels > label");
    labels[[...block.parentElement.children].indexOf(block)].click();
  }
  target?.scrollIntoView();
};
addEventListener("hashchange", show);
addEventListener("load", show);
