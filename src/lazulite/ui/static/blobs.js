// Uploads of files and folders: blocks of 4 MiB, three at once, then the list of the blocks.
import { announce, post } from "./app.js";

const BLOCK = 4 * 1024 * 1024, AT_ONCE = 3, BLOCKS_MAX = 50000;
const place = document.getElementById("upload");
if (place) begin();

function begin() {
  place.hidden = false;
  for (const input of place.querySelectorAll("input[data-files]")) {
    input.addEventListener("change", () => {
      upload([...input.files].map((file) => ({ file, path: file.webkitRelativePath || file.name })));
    });
  }
  for (const name of ["dragenter", "dragover"]) {
    place.addEventListener(name, (event) => { event.preventDefault(); place.classList.add("over"); });
  }
  place.addEventListener("dragleave", () => place.classList.remove("over"));
  place.addEventListener("drop", async (event) => {
    event.preventDefault();
    place.classList.remove("over");
    const entries = [...event.dataTransfer.items].map((item) => item.webkitGetAsEntry()).filter(Boolean);
    const found = [];
    for (const entry of entries) await collect(entry, found);
    upload(found);
  });
}

/** Add the files of a folder that was dropped. */
async function collect(entry, found) {
  if (entry.isFile) {
    const file = await new Promise((resolve, reject) => entry.file(resolve, reject));
    found.push({ file, path: entry.fullPath.replace(/^\//, "") });
    return;
  }
  const reader = entry.createReader();
  for (;;) {
    const part = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (part.length === 0) return;
    for (const each of part) await collect(each, found);
  }
}

/** The URL of an action with more parameters. */
function to(action, parameters) {
  return `${action}&${new URLSearchParams(parameters).toString().replaceAll("+", "%20")}`;
}

async function checked(response) {
  if (response.ok) return;
  let text = `HTTP status ${response.status}`;
  try { text = (await response.json()).text || text; } catch { /* It is no JSON: the status has to do. */ }
  throw new Error(text);
}

/** What is to be sent: a block each, and the file that it is of. */
function* blocksOf(items) {
  for (const item of items) {
    item.count = Math.ceil(item.file.size / BLOCK);
    item.rest = item.count;
    item.id = [...crypto.getRandomValues(new Uint8Array(8))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
    for (let number = 0; number < Math.max(item.count, 1); number += 1) yield { item, number };
  }
}

let running = false;

async function upload(items) {
  if (running || items.length === 0) return;
  running = true;
  const line = place.querySelector(".uploading"), bar = line.querySelector("progress");
  const said = line.querySelector("[data-said]"), failed = place.querySelector("[data-failed]");
  const replace = place.querySelector("[data-replace]").checked;
  const total = items.reduce((sum, { file }) => sum + file.size, 0);
  const blocks = blocksOf(items);
  let sent = 0, done = 0, stopped = false;
  line.querySelector("[data-stops]").onclick = () => { stopped = true; };
  line.hidden = false;
  failed.replaceChildren();
  show();

  function show() {
    bar.max = Math.max(total, 1);
    bar.value = total ? sent : 1;
    said.textContent = `${done} of ${items.length} files, ${Math.floor(sent / 1048576)} of ${Math.ceil(total / 1048576)} MiB`;
  }

  function fail(item, text) {
    if (item.failed) return;
    item.failed = true;
    const entry = document.createElement("li");
    entry.textContent = `${item.path}: ${text}`;
    failed.append(entry);
  }

  async function send({ item, number }) {
    if (item.failed) return;
    const name = place.dataset.folder + item.path;
    try {
      if (item.count > BLOCKS_MAX) throw new Error(`a blob has at most ${BLOCKS_MAX} blocks of 4 MiB`);
      if (item.count > 0) {
        const part = item.file.slice(number * BLOCK, (number + 1) * BLOCK);
        await checked(await post(to(place.dataset.block, { name, upload: item.id, number }), part));
        sent += part.size;
        item.rest -= 1;
      }
      if (item.rest === 0) {
        const fields = { name, upload: item.id, count: item.count, type: item.file.type, replace };
        await checked(await post(place.dataset.commit, new URLSearchParams(fields)));
        done += 1;
      }
    } catch (error) {
      fail(item, error.message);
    }
    show();
  }

  // Workers take from one generator; `for … of` would close it when the first one leaves.
  const shared = { [Symbol.iterator]: () => ({ next: () => blocks.next() }) };
  const worker = async () => {
    for (const block of shared) {
      if (stopped) return;
      await send(block);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  running = false;
  announce(`${done} of ${items.length} files are uploaded`);
  if (done === items.length) location.reload();
  else said.textContent += stopped ? ": stopped" : ": some were not uploaded";
}
