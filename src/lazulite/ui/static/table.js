// Tables: select all, counts on buttons, the columns that were chosen last, Ctrl+Enter, and one more property.
import { announce } from "./app.js";

const boxes = (name) => [...document.querySelectorAll(`input[type="checkbox"][name="${name}"]`)];

for (const all of document.querySelectorAll("input[data-all]")) {
  all.addEventListener("change", () => {
    for (const box of boxes(all.dataset.all)) box.checked = all.checked;
    count();
  });
}
document.addEventListener("change", count);
count();

function count() {
  for (const button of document.querySelectorAll("button[data-counts]")) {
    const number = boxes(button.dataset.counts).filter((box) => box.checked).length;
    button.disabled = number === 0;
    button.textContent = button.dataset.text.replace("#", String(number));
  }
}

for (const area of document.querySelectorAll("#filter, #entity textarea")) {
  area.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) area.form.requestSubmit();
  });
}

// The choice of columns stays in the browser, by table.
const search = document.getElementById("search");
if (search) {
  const key = `columns ${search.dataset.table}`;
  const given = new URLSearchParams(location.search);
  const kept = localStorage.getItem(key);
  if (given.get("columns")) localStorage.setItem(key, given.get("columns"));
  else if (kept) {
    given.set("columns", kept);
    location.replace(`${location.pathname}?${given}`);
  }
  document.querySelector("a[data-forgets]")?.addEventListener("click", () => localStorage.removeItem(key));
}

const add = document.querySelector("button[data-adds]");
if (add) {
  add.hidden = false;
  add.addEventListener("click", () => {
    const rows = document.querySelectorAll("tr[data-new]");
    const row = rows[rows.length - 1].cloneNode(true);
    for (const field of row.querySelectorAll("input, textarea")) field.value = "";
    rows[rows.length - 1].after(row);
    row.querySelector("input").focus();
    announce("One more property");
  });
}
