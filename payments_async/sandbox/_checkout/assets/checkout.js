// What the checkout does on top of its links and forms: live status, one submission per form, the card form in
// its place, the way back. Every page works without it.

const AGAIN = 2000; // milliseconds until a stream that the browser has given up is asked for anew
const ONWARD = 10; // seconds until a payer who has paid is taken back

const wait = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

// --- one submission per form ---------------------------------------------------------------------
const guard = (event) => {
  const form = event.target;
  if (form.getAttribute("method") !== "post") return; // form.method is the field of that name, where there is one
  if (form.dataset.sent || refused(form)) {
    event.preventDefault();
    return;
  }
  const others = event.submitter?.value === "choose" ? [] : form.querySelectorAll(".option > input:not(:checked) ~ .more input");
  for (const input of others) input.disabled = true;
  form.dataset.sent = "yes";
  // Enter presses the first method's button, which is folded: the one that is seen turns
  const open = event.submitter?.matches(".main") && form.querySelector(":checked ~ .more .main");
  (open || event.submitter)?.setAttribute("aria-disabled", "true");
};

// --- live status ---------------------------------------------------------------------------------
const read = async (address) => {
  const response = await fetch(address, { headers: { Accept: "text/html" } });
  return new DOMParser().parseFromString(await response.text(), "text/html");
};

let pressed = false;
const release = () => { pressed = false; };
const released = async () => { while (pressed) await wait(50); };

// The page as it now stands, in place: the heading takes the focus, the live region says what changed. Never
// under a finger that presses a button, nor while a form is on its way: that leads to the page by itself.
const renew = async (step) => {
  const main = document.querySelector("main");
  if (step === main.dataset.step) return;
  const page = await read(main.dataset.page);
  const fresh = page.querySelector("main");
  await released();
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
  stream.addEventListener("clock", ({ data }) => {
    const [left, speed] = data.split(" ").map(Number);
    clock = { left, speed, at: performance.now() };
    tick();
  });
  stream.addEventListener("error", () => {
    if (stream?.readyState !== EventSource.CLOSED) return;
    leave();
    setTimeout(follow, AGAIN);
  });
};

// --- numbers and times as the payer writes them --------------------------------------------------
// The browser's own variant of the page's language: a payer in Britain reads 15:05, one in America 3:05 PM. In the
// other languages times have two digits and 24 hours, as the server writes them.
const { lang } = document.documentElement;
const locale = new Intl.Locale(navigator.languages.find((own) => own.split("-")[0] === lang) ?? (lang === "pt" ? "pt-PT" : lang), { numberingSystem: "latn" });
const hour = lang === "en" ? { hour: "numeric" } : { hour: "2-digit", hourCycle: "h23" };
const moment = new Intl.DateTimeFormat(locale, { day: "numeric", month: "short", year: "numeric", ...hour, minute: "2-digit" });
const countdown = new Intl.NumberFormat(locale, { style: "unit", unit: "second", unitDisplay: "long" });
const ahead = new Intl.RelativeTimeFormat(locale);

const inWords = (seconds) => {
  if (seconds < 7200) return ahead.format(Math.max(1, Math.round(seconds / 60)), "minute");
  const hours = Math.round(seconds / 3600);
  return seconds < 172800 ? ahead.format(hours, "hour") : ahead.format(Math.round(hours / 24), "day");
};

const localise = () => {
  for (const time of document.querySelectorAll("time")) time.textContent = moment.format(new Date(time.dateTime));
};

// --- the time left -------------------------------------------------------------------------------
// The sandbox's clock may stand still, run fast or skip: the stream says so, and the page counts on from there.
let clock = null;

const stopwatch = (seconds) => {
  const [hours, minutes, rest] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
  const shown = (number) => String(number).padStart(2, "0");
  return hours ? `${hours}:${shown(minutes)}:${shown(rest)}` : `${minutes}:${shown(rest)}`;
};

const tick = () => {
  if (!clock) return;
  const left = Math.max(0, Math.round(clock.left - ((performance.now() - clock.at) / 1000) * clock.speed));
  for (const words of document.querySelectorAll(".ahead")) words.textContent = inWords(left);
  const shown = document.querySelector(".left");
  if (!shown) return;
  shown.querySelector("b").textContent = stopwatch(left);
  shown.querySelector(".rest").setAttribute("stroke-dasharray", `${(100 * left) / shown.dataset.whole} 100`);
};

// --- what the payer has to do --------------------------------------------------------------------
// A code is sent with its last digit; what is offered for later comes later.
const entered = ({ target }) => {
  const wanted = Number(target.dataset?.digits);
  if (wanted && digits(target.value).length === wanted) target.form.requestSubmit();
};

const later = (form) => {
  form.hidden = true;
  setTimeout(() => { form.hidden = false; }, form.dataset.later * 1000);
};

const copyable = (list) => {
  for (const row of list.children) {
    const [name, value] = [row.querySelector("dt"), row.querySelector("dd bdi")];
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = list.dataset.copy;
    button.ariaLabel = `${list.dataset.copy}: ${name.textContent}`;
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(value.textContent);
      button.textContent = list.dataset.copied;
      document.querySelector(".live").textContent = `${list.dataset.copied}: ${name.textContent}`;
      setTimeout(() => { button.textContent = list.dataset.copy; }, 2000);
    });
    value.parentElement.append(button);
  }
};

// --- cards to practise with ----------------------------------------------------------------------
// A number that is not on the page's list could be a real card: it is taken out again, and never sent. Nor has an
// expiry date or a CVC more than 6 digits. Arabic keyboards have digits of their own.
const digits = (text) => text.replace(/[٠-٩۰-۹]/g, (digit) => digit.charCodeAt() % 16).replace(/\D/g, "");

const refused = (form) => {
  const inputs = [...form.querySelectorAll("[data-card]")];
  const typed = digits(inputs[0]?.value ?? "");
  const known = [...form.querySelectorAll("[data-number]")].some((row) => digits(row.dataset.number).startsWith(typed));
  const short = inputs.slice(1).every((input) => digits(input.value).length <= 6);
  if (!inputs.length || (known && short)) return false;
  for (const input of inputs) input.value = "";
  form.querySelector("[data-never]").hidden = false;
  inputs[0].focus();
  return true;
};

const typedCard = ({ target, inputType }) => {
  if (!("card" in target.dataset) || refused(target.form) || !target.value) return;
  target.form.querySelector("[data-never]").hidden = true;
  const last = target.selectionStart === target.value.length;
  if (!target.id.endsWith("-expiry") || !last || inputType?.startsWith("delete")) return;
  target.value = target.value.replace(/^(0[1-9]|1[0-2])[\s/.-]*/, "$1/"); // the slash comes by itself
};

const practise = (list) => {
  for (const row of list.querySelectorAll("li")) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...row.childNodes);
    button.addEventListener("click", () => {
      const values = [row.dataset.number, "12/34", "123"];
      for (const input of button.form.querySelectorAll("[data-card]")) input.value = values.shift();
      button.form.querySelector("[data-never]").hidden = true;
    });
    row.append(button);
  }
};

const enhanceCards = (root) => {
  for (const list of root.querySelectorAll(".practice")) practise(list);
};

// --- choosing ------------------------------------------------------------------------------------
// What is chosen stands in the address, so that reloading keeps it. Another country brings its own examples and
// the health of the methods there; what was typed stays.
const address = () => {
  const form = document.querySelector("#pay");
  const chosen = new URL(form.action);
  for (const name of ["country", "method"]) {
    const value = new FormData(form).get(name);
    if (value) chosen.searchParams.set(name, value);
  }
  return chosen.href;
};

const relocate = async (select) => {
  const asked = select.value;
  const page = await read(address());
  await released();
  const [old, fresh] = [document, page].map((one) => one.querySelector("#methods"));
  if (!old || !fresh || select.value !== asked) return;
  const chosen = old.querySelector(":checked");
  if (chosen) fresh.querySelector(`[value="${chosen.value}"]`).checked = true;
  for (const input of old.querySelectorAll(".field input")) fresh.querySelector(`#${input.id}`).value = input.value;
  const focused = old.contains(document.activeElement) && document.activeElement.id;
  old.replaceWith(fresh);
  if (focused) document.getElementById(focused)?.focus();
  enhanceCards(fresh);
  select.parentElement.querySelector("svg").replaceWith(page.querySelector(".select svg"));
};

const chose = ({ target }) => {
  if (target.name !== "method" && target.id !== "country") return;
  history.replaceState(null, "", address());
  if (target.id === "country") relocate(target).catch(() => {});
};

// A number typed for one method serves the others, too.
const typed = ({ target }) => {
  if (target.type !== "tel") return;
  for (const twin of document.querySelectorAll("#methods input[type=tel]")) twin.value = target.value;
};

// --- the card form, and the way back -------------------------------------------------------------
const mount = async (container) => {
  try {
    const form = (await read(container.dataset.mount)).querySelector("form");
    if (!form) return;
    container.replaceChildren(form);
    enhanceCards(container);
  } catch {
    // the link to the form's own page stays
  }
};

const goOn = (link) => {
  const said = document.createElement("p");
  const text = document.createElement("span");
  const stay = document.createElement("button");
  let left = ONWARD;
  const tell = () => { text.textContent = link.dataset.onward.replace("{time}", countdown.format(left)); };
  said.className = "onward";
  tell();
  stay.type = "button";
  stay.className = "quiet";
  stay.textContent = link.dataset.stay;
  said.append(text, stay);
  link.after(said);
  const timer = setInterval(() => {
    left -= 1;
    if (left > 0) return tell();
    clearInterval(timer);
    if (link.isConnected) location.assign(link.href);
  }, 1000);
  stay.addEventListener("click", () => {
    clearInterval(timer);
    said.remove();
    link.focus();
  });
};

const enhance = () => {
  follow();
  localise();
  tick();
  enhanceCards(document);
  // the answer to a form, as after a change of language: reloading it, or coming back to it, asks for the page alone
  if (document.querySelector("#pay[data-posted]")) history.replaceState(null, "", address());
  for (const form of document.querySelectorAll("form[data-later]")) later(form);
  for (const list of document.querySelectorAll("[data-copy]")) copyable(list);
  for (const container of document.querySelectorAll("[data-mount]")) mount(container);
  for (const link of document.querySelectorAll("[data-onward]")) goOn(link);
};

document.addEventListener("submit", guard);
document.addEventListener("change", chose);
document.addEventListener("input", typed);
document.addEventListener("input", entered);
document.addEventListener("input", typedCard);
setInterval(tick, 1000);
document.addEventListener("visibilitychange", follow);
addEventListener("pointerdown", () => { pressed = true; }, true);
for (const end of ["pointerup", "pointercancel"]) addEventListener(end, release, true);
addEventListener("pagehide", leave);
// A page kept by the browser may be out of date: what it offers may have been paid.
addEventListener("pageshow", (event) => event.persisted && location.reload());
enhance();
