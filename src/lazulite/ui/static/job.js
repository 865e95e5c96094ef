// Follows a job: asks for its JSON each second until it has ended, then shows the page as it is at the end.
import { announce } from "./app.js";

const place = document.getElementById("job");
if (place && place.dataset.ended === "false") follow();

async function follow() {
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, 1000));
    let found;
    try {
      const response = await fetch(`${location.pathname}.json`);
      if (!response.ok) return;
      found = await response.json();
    } catch {
      return announce("The server does not answer.");
    }
    if (found.has_ended) return location.reload();
    show(found.job);
  }
}

function show(job) {
  const done = Number(job.done);
  document.getElementById("done").textContent = done.toLocaleString("en");
  document.getElementById("failed").textContent = Number(job.failed).toLocaleString("en");
  document.getElementById("state").textContent = job.state;
  document.getElementById("lines").textContent = job.lines.join("\n");
  const bar = document.getElementById("bar");
  if (bar && job.total) {
    bar.max = job.total;
    bar.value = done;
  }
}
