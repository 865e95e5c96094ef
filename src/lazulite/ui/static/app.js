// What every page has: the account chooser goes at once, typed confirmations, and pages that follow a job.
const token = document.querySelector('meta[name="csrf"]')?.content ?? "";

/** Send a request that changes something; the response is the server's. */
export function post(url, body, headers = {}) {
  return fetch(url, { method: "POST", body, headers: { "X-CSRF-Token": token, ...headers } });
}

/** Say something to people who hear the page. */
export function announce(text) {
  const region = document.getElementById("live");
  if (region) region.textContent = text;
}

for (const chooser of document.querySelectorAll("select[data-goes]")) {
  chooser.addEventListener("change", () => chooser.form.requestSubmit());
  chooser.form.querySelector("button").hidden = true;
}

for (const typed of document.querySelectorAll("input[data-confirm]")) {
  const button = typed.form.querySelector("button");
  const check = () => { button.disabled = typed.value !== typed.dataset.confirm; };
  typed.addEventListener("input", check);
  check();
}
