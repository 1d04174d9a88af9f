// What the checkout does on top of its links and forms: live status, one submission per form, the card form in
// its place, the way back. Every page works without it.

const PACE = 600; // milliseconds between looks, growing while nothing changes
const SLOWEST = 5000;
const ONWARD = 10; // seconds until a payer who has paid is taken back

const wait = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

const guard = (event) => {
  const form = event.target;
  if (form.getAttribute("method") !== "post") return; // form.method is the field of that name, where there is one
  if (form.dataset.sent) {
    event.preventDefault();
    return;
  }
  form.dataset.sent = "yes";
  event.submitter?.setAttribute("aria-disabled", "true");
};

const read = async (address) => {
  const response = await fetch(address, { headers: { Accept: "text/html" } });
  return new DOMParser().parseFromString(await response.text(), "text/html");
};

// The page as it now stands, in place: the heading takes the focus, the live region says what changed.
const renew = async (address) => {
  const page = await read(address);
  document.querySelector("main").replaceWith(page.querySelector("main"));
  document.querySelector("footer").replaceWith(page.querySelector("footer"));
  document.title = page.title;
  const heading = document.querySelector("main h1");
  document.querySelector(".live").textContent = heading.textContent;
  heading.focus();
  history.replaceState(null, "", address);
  enhance();
};

const follow = async (main) => {
  let pause = PACE;
  while (main.isConnected) {
    await wait(pause);
    if (document.hidden) continue;
    try {
      const { step } = await (await fetch(main.dataset.status)).json();
      if (step !== main.dataset.step && main.isConnected) return await renew(main.dataset.page);
    } catch {
      // the line may come back: what is not known is not shown as an end
    }
    pause = Math.min(pause * 1.25, SLOWEST);
  }
};

const mount = async (container) => {
  try {
    const form = (await read(container.dataset.mount)).querySelector("form");
    if (form) container.replaceChildren(form);
  } catch {
    // the link to the form's own page stays
  }
};

const goOn = (link) => {
  const said = document.createElement("p");
  const stay = document.createElement("button");
  said.className = "onward";
  said.append(`You are taken back in ${ONWARD} seconds. `);
  stay.type = "button";
  stay.className = "quiet";
  stay.textContent = "Stay here";
  said.append(stay);
  link.after(said);
  const timer = setTimeout(() => link.isConnected && location.assign(link.href), ONWARD * 1000);
  stay.addEventListener("click", () => {
    clearTimeout(timer);
    said.remove();
    link.focus();
  });
};

const enhance = () => {
  const live = document.querySelector("main[data-live]");
  if (live) follow(live);
  for (const container of document.querySelectorAll("[data-mount]")) mount(container);
  for (const link of document.querySelectorAll("[data-onward]")) goOn(link);
};

document.addEventListener("submit", guard);
// A page kept by the browser may be out of date: what it offers may have been paid.
window.addEventListener("pageshow", (event) => event.persisted && location.reload());
enhance();
