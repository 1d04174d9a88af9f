// Sends what the buttons ask for to the control API, and keeps the page fresh. No dependencies.
const ROOT = location.pathname.split("/_sandbox/")[0];
const API = `${ROOT}/_sandbox/api/`;
const EVERY = 1000; // milliseconds until the sandbox is asked again whether something happened
const said = document.getElementById("said");
const live = document.getElementById("live");
document.documentElement.classList.add("js");

let hush = 0;
function say(text, bad = false) {
  clearTimeout(hush);
  if (text) hush = setTimeout(say, 8000, "");
  said.textContent = text;
  said.classList.toggle("bad", bad);
}

async function ask(call, body) {
  const [method, path] = call.split(" ");
  const options = { method, headers: { "Content-Type": "application/json" } };
  if (method === "POST") options.body = body || "{}";
  const answer = await fetch(API + path, options);
  const value = await answer.json();
  if (!answer.ok) throw Object.assign(new Error(value.message || `refused with ${answer.status}`), { field: value.field });
  return value;
}

// --- buttons and forms ---
async function run(button, work) {
  button.disabled = true;
  try {
    say(await work());
    await refresh();
  } catch (failure) {
    say(failure.message, true);
    const field = button.form?.elements[failure.field];
    field?.setAttribute("aria-invalid", "true");
    field?.focus();
  } finally {
    button.disabled = false;
  }
}

function outcome(call, value) {
  if ("changed" in value) return `Now ${shown(value)}; ${value.changed} changed on the way.`;
  if (value.open) location.assign(ROOT + value.open);
  if (call === "POST rules") return `Set ${value.id}: ${value.words} on ${value.operation}.`;
  return value.message || "Done.";
}

// A field `match.reference` is `reference` within `match`; an empty one is left out.
function fields(form) {
  const body = {};
  for (const [name, text] of new FormData(form)) {
    const [outer, inner] = name.split(".");
    if (text !== "" && inner) body[outer] = { ...body[outer], [inner]: text };
    else if (text !== "") body[outer] = text;
  }
  return JSON.stringify(body);
}

async function copied(path) {
  const { code, masked } = await ask(`GET ${path}`);
  await navigator.clipboard.writeText(code);
  return masked ? "Copied with account data masked, so it does not run: press “Show account data” first." : "Copied.";
}

document.addEventListener("click", ({ target }) => {
  const button = target.closest("button");
  const { call, body, copy, sure, text } = button?.dataset ?? {};
  if (text) run(button, () => navigator.clipboard.writeText(document.getElementById(text).textContent).then(() => "Copied."));
  if (copy) run(button, () => copied(copy));
  if (call && (!sure || confirm(sure))) run(button, async () => outcome(call, await ask(call, body)));
});

document.addEventListener("submit", (event) => {
  const form = event.target, { call } = form.dataset;
  if (!call) return;
  event.preventDefault();
  for (const field of form.querySelectorAll("[aria-invalid]")) field.removeAttribute("aria-invalid");
  run(form.querySelector("button"), async () => {
    const value = await ask(call, fields(form));
    form.reset();
    return outcome(call, value);
  });
});

// --- staying fresh ---
// The server renders; a fresh copy of each region takes the place of the old one when it differs.
async function refresh() {
  const answer = await fetch(location.href, { cache: "no-store" });
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  if (answer.status === 404) document.getElementById("main").replaceWith(fresh.getElementById("main")); // it is gone
  for (const region of document.querySelectorAll("[data-live]")) {
    const next = fresh.getElementById(region.id);
    if (next && next.innerHTML !== rendered.get(region)) swap(region, next);
  }
}

const rendered = new WeakMap();
for (const region of document.querySelectorAll("[data-live]")) rendered.set(region, region.innerHTML);

// what a button does, or where a link leads, is what it is known by in a fresh copy
const named = (one) => one.dataset.call ? `${one.dataset.call} ${one.dataset.body}` : one.getAttribute("href") || one.parentElement.dataset.k;
function swap(region, next) {
  rendered.set(region, next.innerHTML);
  const held = region.contains(document.activeElement) && named(document.activeElement);
  const open = [...region.querySelectorAll("details[open]")].map((one) => one.dataset.k);
  region.replaceChildren(...next.childNodes);
  for (const one of region.querySelectorAll("details")) one.open = open.includes(one.dataset.k);
  if (held) ([...region.querySelectorAll("button, a, summary")].find((one) => named(one) === held) ?? document.getElementById("main")).focus({ preventScroll: true });
}

const shown = ({ now }) => now.slice(0, 19).replace("T", " ");
let seen = Number(document.body.dataset.changes), lost = false;
async function look() {
  try {
    if (document.hidden) return;
    const { clock, journal: { changes } } = await ask("GET state");
    for (const time of document.querySelectorAll("time.now")) time.textContent = shown(clock);
    if (live.checked && changes !== seen) {
      seen = changes;
      await refresh();
    }
    if (lost) say("");
    lost = false;
  } catch {
    lost = true;
    say("The sandbox does not answer.", true);
  } finally {
    setTimeout(look, EVERY); // a page that takes long is asked for less often
  }
}
setTimeout(look, EVERY);
