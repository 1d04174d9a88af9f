// Suggestions for the word at the cursor, out of the terms below the box.
const list = document.createElement("ul");
list.id = "suggestions";
list.setAttribute("role", "listbox");
list.setAttribute("aria-label", "Search terms");
let active = -1;

const box = () => document.getElementById("find");
const isBox = (event) => event.target.id === "find";

function fit() {
  const [, word] = box().value.slice(0, box().selectionStart).match(/-?(\S*)$/);
  const terms = [...document.querySelectorAll("#terms [data-term]")];
  const close = terms.filter(({ dataset: { term } }) => term !== word && term.startsWith(word));
  return word ? close : close.filter(({ dataset: { term } }) => term.endsWith(":"));
}

function open() {
  const options = fit().slice(0, 16).map((link, number) => {
    const option = document.createElement("li");
    const { term } = link.dataset;
    option.id = `suggestion-${number}`;
    option.dataset.term = term;
    option.setAttribute("role", "option");
    option.append(Object.assign(document.createElement("code"), { textContent: term }));
    if (term.endsWith(":")) option.append(link.closest("div").querySelector("dd").firstChild.textContent);
    return option;
  });
  list.replaceChildren(...options);
  if (!options.length) return close();
  box().closest("form").append(list);
  box().setAttribute("role", "combobox");
  box().setAttribute("aria-autocomplete", "list");
  box().setAttribute("aria-controls", list.id);
  box().setAttribute("aria-expanded", "true");
  mark(-1);
}

function close() {
  list.remove();
  box()?.setAttribute("aria-expanded", "false");
  box()?.removeAttribute("aria-activedescendant");
}

function mark(number) {
  active = number;
  [...list.children].forEach((option, place) => option.setAttribute("aria-selected", String(place === number)));
  const option = list.children[number];
  option?.scrollIntoView({ block: "nearest" });
  if (option) box().setAttribute("aria-activedescendant", option.id);
  else box().removeAttribute("aria-activedescendant");
}

function choose(option) {
  const { value, selectionStart: cursor } = box();
  const [word, excludes] = value.slice(0, cursor).match(/(-?)\S*$/);
  const { term } = option.dataset;
  const text = value.slice(0, cursor - word.length) + excludes + term + (term.endsWith(":") ? "" : " ");
  box().value = text + value.slice(cursor).trimStart();
  box().setSelectionRange(text.length, text.length);
  if (term.endsWith(":")) open();
  else close();
}

addEventListener("keydown", (event) => {
  if (!isBox(event)) return;
  const { key } = event, count = list.isConnected ? list.children.length : 0;
  if (key === "Escape" && count) close();
  else if (key === "ArrowDown" && !count) open();
  else if (key === "ArrowDown") mark((active + 1) % count);
  else if (key === "ArrowUp" && count) mark(active > 0 ? active - 1 : count - 1);
  else if (key === "Enter" && count && active >= 0) choose(list.children[active]);
  else return;
  event.preventDefault();
}, { capture: true });
addEventListener("input", (event) => { if (isBox(event)) open(); });
addEventListener("focusin", (event) => { if (isBox(event) && !box().value) open(); });
addEventListener("focusout", (event) => { if (isBox(event)) close(); });
list.addEventListener("mousedown", (event) => event.preventDefault());
list.addEventListener("click", (event) => { const option = event.target.closest("li"); if (option) choose(option); });
