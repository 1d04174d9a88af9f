// Keeps the page fresh and sends what its buttons ask for to the control API. No dependencies, no state of its own.
const API = `${location.pathname.split("/_sandbox/")[0]}/_sandbox/api/`;
const root = document.documentElement;
const said = document.getElementById("said");
const live = document.getElementById("live");
root.classList.add("js");

let hush = 0;
function say(text, bad = false) {
  said.textContent = text;
  said.classList.toggle("bad", bad);
  clearTimeout(hush);
  hush = setTimeout(() => { said.textContent = ""; }, bad ? 12000 : 4000);
}

// --- asking ---
async function ask(call, body) {
  const [method, path] = call.split(" ");
  const options = { method, headers: { "Content-Type": "application/json" } };
  if (method === "POST") options.body = body || "{}";
  // a refusal comes as 200 and a member, so that a mistyped word is no error on the console
  const answer = await fetch(API + path + (method === "GET" ? "" : "?refusals=200"), options);
  const value = await answer.json();
  if (!answer.ok || value.refused) {
    const failure = new Error(value.message || `refused with ${answer.status}`);
    failure.field = value.field;
    throw failure;
  }
  return value;
}

async function run(button, work) {
  button.disabled = true;
  try {
    say(await work());
    await refresh();
  } catch (failure) {
    if (!failure.stands) say(failure.message, true);
  } finally {
    button.disabled = false;
  }
}

function outcome(call, value) {
  if (call.endsWith("/replay")) return `Sent again as ${value.id}: answered ${value.status || "nothing"}.`;
  if ("changed" in value) return `Now ${value.now.slice(0, 19).replace("T", " ")}; ${value.changed} changed on the way.`;
  if (call === "POST rules") return `Set ${value.id}: ${value.words} on ${value.operation}.`;
  return value.message || "Done.";
}

function fields(form) {
  const body = {};
  for (const [name, text] of new FormData(form)) {
    if (text === "") continue;
    const [outer, inner] = name.split(".");
    if (inner) body[outer] = { ...body[outer], [inner]: text };
    else body[outer] = text;
  }
  return JSON.stringify(body);
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  const { call, body, copy, copyUrl } = button.dataset;
  if (call && isSure(button)) run(button, async () => outcome(call, await ask(call, body)));
  if (copy !== undefined) run(button, () => put(wholeText(copy ? document.querySelector(copy) : button.previousElementSibling)));
  if (copyUrl) run(button, () => putCode(copyUrl));
});

// What cannot be undone is done when it is pressed a second time, within a few seconds.
const asked = new WeakMap();
function isSure(button) {
  const { sure } = button.dataset;
  const back = asked.get(button);
  if (back) back();
  if (!sure || back) return true;
  const label = button.textContent;
  const timer = setTimeout(() => asked.get(button)(), 4000);
  asked.set(button, () => {
    clearTimeout(timer);
    asked.delete(button);
    button.textContent = label;
  });
  button.textContent = sure;
  return false;
}

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (!form.dataset.call) return;
  event.preventDefault();
  clearFaults(form);
  run(form.querySelector("button"), async () => {
    let value;
    try {
      value = await ask(form.dataset.call, fields(form));
    } catch (failure) {
      complain(form, failure);
      throw failure;
    }
    form.reset();
    return outcome(form.dataset.call, value);
  });
});

// What is wrong with a form stands in it, at the field that is named, else the first one that must be filled in.
function complain(form, failure) {
  const field = form.elements[failure.field] || form.querySelector("[required]");
  const note = document.createElement("p");
  note.id = `wrong-${field.name}`;
  note.className = "wrong bad-text";
  note.textContent = failure.message;
  field.setAttribute("aria-invalid", "true");
  field.dataset.described = field.getAttribute("aria-describedby") || "";
  field.setAttribute("aria-describedby", `${note.id} ${field.dataset.described}`.trim());
  form.querySelector("button").after(note);
  field.focus();
  failure.stands = true; // in the form: once is enough
}

function clearFaults(form) {
  form.querySelectorAll(".wrong").forEach((one) => one.remove());
  for (const field of form.querySelectorAll("[aria-invalid]")) {
    field.removeAttribute("aria-invalid");
    if (field.dataset.described) field.setAttribute("aria-describedby", field.dataset.described);
    else field.removeAttribute("aria-describedby");
  }
}

// What is shown without its middle has all of it as its title.
const wholeText = (element) => element.title || element.textContent;

async function put(text) {
  await navigator.clipboard.writeText(text);
  return "Copied.";
}

async function putCode(path) {
  const { code, masked } = await ask(`GET ${path}`);
  await put(code);
  return masked ? "Copied with account data masked, so it does not run: press “Show account data” first." : "Copied.";
}

// --- staying fresh ---
// The server renders; a fresh copy of each region takes the place of the old one when it differs.
async function refresh() {
  const answer = await fetch(location.href, { cache: "no-store" });
  if (!answer.ok && answer.status !== 404) return;
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  if (!answer.ok) return leave(fresh);
  for (const region of document.querySelectorAll("[data-live]")) {
    const next = fresh.getElementById(region.id);
    if (next && next.innerHTML !== shown.get(region)) swap(region, next);
  }
}

// What the page was about is gone, as after a reset: the answer, which says so, takes its place.
function leave(fresh) {
  const main = document.getElementById("main"), next = fresh.getElementById("main");
  const held = main.contains(document.activeElement);
  main.replaceWith(next);
  if (held) next.focus();
  document.title = fresh.title;
  paused = true;
  show("paused", "paused");
  say(next.innerText, true);
}

const shown = new WeakMap();
for (const region of document.querySelectorAll("[data-live]")) shown.set(region, region.innerHTML);

const named = (one) => one.dataset.k || one.dataset.call || one.getAttribute("href") || one.parentElement.dataset.k;
function swap(region, next) {
  shown.set(region, next.innerHTML);
  const held = region.contains(document.activeElement) ? document.activeElement : null;
  const name = held && (named(held));
  const open = [...region.querySelectorAll("details[open]")].map((one) => one.dataset.k);
  region.replaceChildren(...next.childNodes);
  for (const one of region.querySelectorAll("details")) one.open = open.includes(one.dataset.k);
  if (!name) return;
  const again = [...region.querySelectorAll("button, a, summary")].find((one) => named(one) === name);
  (again || document.getElementById("main")).focus({ preventScroll: true });
}

// At most every half second. A page that takes long is fetched less often, but at least every two seconds.
const EVERY = 500, SHARE = 10, LATEST = 2000;
let paused = false, waiting = 0, busy = false, missed = false, last = 0, cost = 0;
function soon() {
  missed = true;
  if (paused || waiting || busy || document.hidden) return;
  waiting = setTimeout(fetchAgain, Math.max(0, Math.max(EVERY, Math.min(SHARE * cost, LATEST)) - (performance.now() - last)));
}

async function fetchAgain() {
  waiting = 0;
  if (paused) return;
  busy = true;
  missed = false;
  const began = performance.now();
  try { await refresh(); } catch { /* the stream shows that the sandbox is gone */ }
  last = performance.now();
  cost = last - began;
  busy = false;
  if (missed) soon();
}

function show(state, text) {
  live.dataset.state = state;
  live.lastElementChild.textContent = text;
}

// A browser has six connections to a server, and each stream holds one. So only visible pages listen, four at
// most; the others ask. Where the browser knows no locks, as over plain HTTP to another machine, all listen.
const STREAMS = 4, ASK_EVERY = 2000;
let stream = null, free = null, turn = 0, asking = 0, seen = document.body.dataset.changes;
const well = () => show(paused ? "paused" : "on", paused ? "paused" : stream ? "live" : `every ${ASK_EVERY / 1000} s`);

// Gives what frees one of the places to listen, null when another page has it.
const place = (number) => new Promise((taken) => {
  const hold = (lock) => lock && new Promise((release) => { taken(release); });
  navigator.locks.request(`${API}stream-${number}`, { ifAvailable: true }, hold).then(() => taken(null));
});

function mute() {
  stream?.close();
  free?.();
  clearTimeout(asking);
  stream = free = null;
  turn += 1;
}

async function listen() {
  mute();
  if (document.hidden) return;
  const mine = turn;
  let release = navigator.locks ? null : () => {};
  for (let number = 0; !release && number < STREAMS; number += 1) release = await place(number);
  if (mine !== turn) return release?.();
  if (!release) return askAgain(mine);
  free = release;
  stream = new EventSource(`${API}stream?pulse=1&after=${seen}`);
  stream.addEventListener("open", () => { well(); soon(); });
  stream.addEventListener("pulse", (event) => { seen = event.lastEventId; soon(); });
  stream.addEventListener("error", () => show("lost", "reconnecting"));
}

async function askAgain(mine) {
  try {
    const { journal: { changes } } = await ask("GET state");
    well();
    if (String(changes) !== seen) soon();
    seen = String(changes);
  } catch { show("lost", "reconnecting"); }
  if (mine === turn) asking = setTimeout(listen, ASK_EVERY); // a place may be free by then
}

listen();
addEventListener("visibilitychange", listen);
addEventListener("pageshow", (event) => { if (event.persisted) listen(); });
addEventListener("pagehide", mute);

const pause = document.getElementById("pause");
pause?.addEventListener("click", () => {
  paused = !paused;
  pause.setAttribute("aria-pressed", String(paused));
  well();
  soon();
});

// --- the chart ---
// A click follows the link of a bar; dragging over several of them chooses their time.
let dragged = null;
const drawn = () => document.querySelector("#figures .chart > svg");
const chartOf = (event) => event.target.closest?.("#figures .chart > svg");

function barAt(chart, event) {
  const { left, width } = chart.getBoundingClientRect();
  const count = Number(chart.dataset.bars);
  return Math.min(count - 1, Math.max(0, Math.floor(((event.clientX - left) / width) * count)));
}

addEventListener("dragstart", (event) => { if (chartOf(event)) event.preventDefault(); });
addEventListener("pointerdown", (event) => {
  const chart = event.button === 0 && chartOf(event);
  dragged = chart ? barAt(chart, event) : null;
});
addEventListener("pointerup", (event) => {
  const chart = drawn(), first = dragged;
  dragged = null;
  if (first === null || !chart || barAt(chart, event) === first) return;
  const { since, until, bars } = chart.dataset;
  const bar = (Date.parse(until) - Date.parse(since)) / bars;
  const [low, high] = [first, barAt(chart, event)].sort((one, other) => one - other);
  const moment = (count) => new Date(Date.parse(since) + count * bar).toISOString().slice(0, 19) + "Z";
  const address = new URL(location.href);
  address.searchParams.set("from", moment(low));
  address.searchParams.set("to", moment(high + 1));
  location.assign(address);
});

// --- clocks ---
// The sandbox's clock runs on between two refreshes; each refresh corrects it.
const since = new WeakMap();
function tick() {
  for (const time of document.querySelectorAll("time[data-at]")) {
    if (!since.has(time)) since.set(time, performance.now());
    const passed = (performance.now() - since.get(time)) / 1000;
    const now = new Date((Number(time.dataset.at) + passed * Number(time.dataset.speed)) * 1000);
    const text = now.toISOString().slice(0, 19).replace("T", " ");
    if (time.textContent !== text) time.textContent = text;
  }
}
tick();
setInterval(tick, 250);
