// Keeps the page fresh: asks for it every two seconds, and puts what differs in its place.
const note = document.getElementById("live");

async function refresh() {
  if (document.hidden) return;
  try {
    const answer = await fetch(location.pathname, { cache: "no-store" });
    if (!answer.ok) throw new Error(await answer.text());
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const name of ["head", "main"]) {
      const shown = document.getElementById(name), next = fresh.getElementById(name);
      if (shown.innerHTML !== next.innerHTML) shown.replaceWith(next);
    }
    document.body.classList.remove("stale");
    note.textContent = "live";
  } catch {
    document.body.classList.add("stale");
    note.textContent = "no connection: the command that serves it may have ended";
  }
}

setInterval(refresh, 2000);
document.addEventListener("visibilitychange", refresh);
