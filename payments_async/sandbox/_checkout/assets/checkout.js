// What the checkout does on top of its links and forms: one submission of a form, live status.
// Every page works without it.

const EVERY = 1000; // milliseconds until the page is asked for again

// --- one submission of a form --------------------------------------------------------------------
const guard = (event) => {
  const form = event.target;
  if (form.getAttribute("method") !== "post") return; // form.method is the field of that name, where there is one
  if (form.dataset.sent) return event.preventDefault();
  for (const input of form.querySelectorAll(".option > input:not(:checked) ~ .more :is(input, select)")) input.disabled = true;
  form.dataset.sent = "yes";
  // Enter presses the first method's button, which is folded: the one that is seen turns
  const seen = event.submitter?.matches(".main") && form.querySelector(":checked ~ .more .main");
  (seen || event.submitter)?.setAttribute("aria-disabled", "true");
};

// --- live status ---------------------------------------------------------------------------------
// The page as it now stands, in place: the heading takes the focus, the live region says what changed. Never while
// a form is on its way: that leads to the page by itself.
const renew = async (address) => {
  const response = await fetch(address, { headers: { Accept: "text/html" } });
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  const main = document.querySelector("main"), fresh = page.querySelector("main");
  if (fresh.dataset.step === main.dataset.step || document.querySelector("form[data-sent]")) return;
  main.replaceWith(fresh);
  document.querySelector("footer").replaceWith(page.querySelector("footer"));
  document.title = page.title;
  const beside = page.querySelector(".beside");
  if (beside && !document.querySelector(".beside")) fresh.after(beside);
  const heading = fresh.querySelector("h1");
  document.querySelector(".live").textContent = heading.textContent;
  if (window === top) (fresh.querySelector("[autofocus]") ?? heading).focus();
  history.replaceState(null, "", address);
  enhance();
};

// No page means that nothing may change any more. One that cannot be read now is asked for again.
const follow = async () => {
  const { page } = document.querySelector("main").dataset;
  if (!page) return;
  if (!document.hidden) await renew(page).catch(() => {});
  setTimeout(follow, EVERY);
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
  // the answer to a form: reloading it, or coming back to it, asks for the page alone
  if (document.querySelector("#pay[data-posted]")) keepChoice();
};

document.addEventListener("submit", guard);
document.addEventListener("change", chose);
// A page kept by the browser may be out of date: what it offers may have been paid.
addEventListener("pageshow", (event) => event.persisted && location.reload());
enhance();
follow();
