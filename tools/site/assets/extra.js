// Each block of code is a landmark of its own; a screen reader needs a name for each.
new MutationObserver(() => {
  document.querySelectorAll(".md-code__nav:not([aria-label])").forEach((block, number) => {
    block.setAttribute("aria-label", `Code ${number + 1}`);
  });
}).observe(document.documentElement, { childList: true, subtree: true });
