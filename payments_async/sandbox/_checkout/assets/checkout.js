// What the checkout does on top of its links and forms: one submission of a form, live status.
// Every page works without it.

const AGAIN = 2000; // milliseconds until a stream that the browser has given up is asked for anew

// --- one submission of a form --------------------------------------------------------------------
const guard = (event) => {
  const form = event.target;
  if (form.getAttribute("method") !== "post") return; // form.method is the field of that name, where there is one
  if (form.dataset.sent) return event.preventDefault();
  const others = event.submitter?.value === "choose" ? [] : form.querySelectorAll(".option > input:not(:checked) ~ .more :is(input, select)");
  for (const input of others) input.disabled = true;
  form.dataset.sent = "yes";
  // Enter presses the first method's button, which is folded: the one that is seen turns
  const seen = event.submitter?.matches(".main") && form.querySelector(":checked ~ .more .main");
  (seen || event.submitter)?.setAttribute("aria-disabled", "true");
};

// --- live status ---------------------------------------------------------------------------------
// The page as it now stands, in place: the heading takes the focus, the live region says what changed. Never while
// a form is on its way: that leads to the page by itself.
const renew = async (step) => {
  const main = document.querySelector("main");
  if (step === main.dataset.step) return;
  const response = await fetch(main.dataset.page, { headers: { Accept: "text/html" } });
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  const fresh = page.querySelector("main");
  if (fresh.dataset.step === main.dataset.step || document.querySelector("form[data-sent]")) return;
  main.replaceWith(fresh);
  document.querySelector("footer").replaceWith(page.querySelector("footer"));
  document.title = page.title;
  const beside = page.querySelector(".beside");
  if (beside && !document.querySelector(".beside")) fresh.after(beside);
  const heading = fresh.querySelector("h1");
  document.querySelector(".live").textContent = heading.textContent;
  if (window === top) (fresh.querySelector("[autofocus]") ?? heading).focus();
  history.replaceState(null, "", main.dataset.page);
  enhance();
};

// Only while the page is visible: a browser has six connections for one server, and every stream takes one.
let stream = null;
let renewal = Promise.resolve();

const leave = () => {
  stream?.close();
  stream = null;
};

const follow = () => {
  const { events } = document.querySelector("main").dataset;
  if (!events || document.hidden) return leave();
  if (stream) return;
  stream = new EventSource(events);
  // a page that cannot be read now is tried again when the stream comes back: that begins with the step
  stream.addEventListener("message", ({ data }) => { renewal = renewal.then(() => renew(data)).catch(() => {}); });
  stream.addEventListener("error", () => {
    if (stream?.readyState !== EventSource.CLOSED) return;
    leave();
    setTimeout(follow, AGAIN);
  });
};

// --- choosing ------------------------------------------------------------------------------------
// What is chosen stands in the address, so that reloading keeps it.
const keepChoice = () => {
  const form = document.querySelector("#pay");
  const chosen = new URL(form.action);
  for (const name of ["country", "method"]) {
    const value = new FormData(form).get(name);
    if (value) chosen.searchParams.set(name, value);
  }
  history.replaceState(null, "", chosen.href);
};

const chose = ({ target }) => {
  if (target.name === "method" || target.id === "country") keepChoice();
};

const enhance = () => {
  follow();
  // the answer to a form, as after a change of language: reloading it, or coming back to it, asks for the page alone
  if (document.querySelector("#pay[data-posted]")) keepChoice();
};

document.addEventListener("submit", guard);
document.addEventListener("change", chose);
document.addEventListener("visibilitychange", follow);
addEventListener("pagehide", leave);
// A page kept by the browser may be out of date: what it offers may have been paid.
addEventListener("pageshow", (event) => event.persisted && location.reload());
enhance();
