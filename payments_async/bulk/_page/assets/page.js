// Keeps the page fresh: after each piece of news the server renders it anew, and what differs takes its place.
const root = document.documentElement;
const live = document.getElementById("live");
root.classList.add("js");

const shown = new WeakMap();
const regions = () => document.querySelectorAll("[data-live]");
for (const region of regions()) shown.set(region, region.innerHTML);

async function refresh() {
  const answer = await fetch(location.pathname, { cache: "no-store" });
  if (!answer.ok) return;
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  for (const region of regions()) {
    const next = fresh.getElementById(region.id);
    if (next && next.innerHTML !== shown.get(region)) swap(region, next);
  }
}

function swap(region, next) {
  shown.set(region, next.innerHTML);
  const held = region.contains(document.activeElement) ? document.activeElement : null;
  const place = [...region.querySelectorAll("a")].indexOf(held);
  region.replaceChildren(...next.childNodes);
  if (held) {
    const now = [...region.querySelectorAll("a")];
    const again = now.find((one) => one.href === held.href);
    (again || now[place] || document.getElementById("main")).focus({ preventScroll: true });
  }
}

let heard = Date.now();
function hear() {
  heard = Date.now();
  say("on", "live");
}

function say(state, text) {
  live.hidden = false;
  live.dataset.state = state;
  root.classList.toggle("stale", state === "lost");
  live.lastElementChild.textContent = text;
}

let busy = false, missed = false;
async function soon() {
  if (busy) { missed = true; return; }
  busy = true;
  do {
    missed = false;
    try { await refresh(); } catch { /* the stream says that the server is gone */ }
  } while (missed);
  busy = false;
}

// Only a visible tab listens: a browser has six connections to a server, and each stream holds one.
let stream = null, over = false;
function listen() {
  stream?.close();
  stream = null;
  if (document.hidden || over) return;
  stream = new EventSource(location.pathname.replace(/(rows\/\d+)?$/, "events"));
  stream.onopen = hear;
  stream.addEventListener("beat", hear);
  stream.onerror = () => say("lost", "no connection: the command that serves it may have ended");
  stream.addEventListener("change", () => { hear(); soon(); });
  stream.addEventListener("over", async () => {
    over = true;
    await soon();
    stream?.close();
    say("off", "final");
    // its server is gone: the footer says what opens the page again
    document.querySelectorAll("a[href^='/']").forEach((one) => one.removeAttribute("href"));
  });
}
// The server sends a beat every five seconds, also when nothing has changed.
setInterval(() => {
  const seconds = Math.floor((Date.now() - heard) / 1000);
  if (stream?.readyState === EventSource.OPEN && seconds >= 12) say("lost", `no news for ${seconds} s`);
}, 1000);
document.addEventListener("visibilitychange", listen);
listen();
