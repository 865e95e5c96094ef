// Follows a recording: asks for its JSON every two seconds until it has ended, then shows the page with the advice.
import { announce } from "./app.js";

const place = document.getElementById("recording");
if (place) follow();

async function follow() {
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, 2000));
    let found;
    try {
      const response = await fetch(`${location.pathname}.json${location.search}`);
      if (!response.ok) return;
      found = await response.json();
    } catch {
      return announce("The server does not answer.");
    }
    if (found.has_ended) return location.reload();
    document.getElementById("bar").value = Number(found.job.done);
    document.getElementById("done").textContent = Number(found.job.done).toLocaleString("en");
  }
}
