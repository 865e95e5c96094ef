// Tells how many requests have come since the page was made. Nothing moves until its reader asks for them.
const place = document.getElementById("fresh");
const PAUSE_MS = 2000;
const MOST = 100;
if (place) follow(Number(place.dataset.newest));

async function follow(newest) {
  const url = new URL(location.href);
  url.pathname += ".json";
  url.searchParams.set("since", String(newest));
  url.searchParams.delete("limit");
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    if (document.hidden) continue;
    try {
      const response = await fetch(url);
      if (!response.ok) return say("The list is not followed any more: load the page again.");
      const found = await response.json();
      const count = found.requests.filter((each) => each.ended > newest).length;
      if (count) offer(count);
    } catch {
      say("The server does not answer.");
    }
  }
}

function say(text) {
  place.textContent = text;
}

function offer(count) {
  const link = document.createElement("a");
  link.href = location.href;
  link.textContent = `Show ${count >= MOST ? `${MOST} or more` : count} new`;
  place.replaceChildren(link);
}
