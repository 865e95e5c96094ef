// An import: the first bytes of the chosen file become a preview, made by the server; then the whole file is sent.
import { announce, post } from "./app.js";

const form = document.getElementById("import");
const button = form?.querySelector("button");
const HEADERS = { "Content-Type": "application/octet-stream" };
let latest = 0;

form?.file.addEventListener("change", () => {
  const name = form.file.files[0]?.name.toLowerCase() ?? "";
  const known = [...form.format.options].find((each) => each.dataset.endings.split(" ").some((end) => end && name.endsWith(end)));
  if (known && !(known.value === "csv" && form.format.value === "plain-csv")) form.format.value = known.value;
});
form?.addEventListener("change", look);

const choices = () => new URLSearchParams(["format", "mode", "row-keys"].map((name) => [name, form.elements[name].value]));

async function look() {
  const file = form.file.files[0];
  const number = ++latest;
  button.disabled = true;
  if (!file) return;
  const start = file.slice(0, Number(form.dataset.bytes));
  const response = await post(`${form.dataset.preview}&${choices()}&size=${file.size}`, start, HEADERS);
  const text = await response.text();
  if (number !== latest) return; // Another choice was made meanwhile.
  const found = new DOMParser().parseFromString(text, "text/html").getElementById("preview");
  if (!found) return show(problem(JSON.parse(text).text));
  button.disabled = false;
  show(...found.childNodes);
  announce(found.dataset.shown === "yes" ? "The first rows are shown below." : "The first rows cannot be shown.");
}

form?.addEventListener("submit", async (event) => {
  event.preventDefault();
  button.disabled = true;
  announce("The file is sent.");
  const response = await post(`${form.dataset.url}&${choices()}`, form.file.files[0], HEADERS);
  const found = await response.json();
  if (response.ok) location.assign(found.location);
  else show(problem(found.text));
});

function show(...nodes) {
  document.getElementById("preview").replaceChildren(...nodes);
}

function problem(text) {
  const line = document.createElement("p");
  line.className = "bad";
  line.setAttribute("role", "alert");
  line.textContent = text;
  return line;
}
