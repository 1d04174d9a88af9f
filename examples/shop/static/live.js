// Looks at the page again every two seconds and shows what has changed, so that nobody has to reload it.
const look = async () => {
  try {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const part of document.querySelectorAll("[data-live]")) {
      const now = page.getElementById(part.id);
      if (now && now.innerHTML !== part.innerHTML) part.innerHTML = now.innerHTML;
    }
    if (document.title !== page.title) document.title = page.title;
  } catch {
    // the shop is away: the next look may find it
  }
  setTimeout(look, 2000);
};
setTimeout(look, 2000);
