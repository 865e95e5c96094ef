// The line below a heat map: the range, the time and the rate of the cell that the pointer or the arrow keys are at.
const response = await fetch(`${location.pathname}.json${location.search}`);
const view = response.ok ? (await response.json()).view : null;

for (const picture of view ? document.querySelectorAll("img[data-panel]") : []) {
  const panel = view.panels[picture.dataset.panel];
  const line = document.getElementById(`cell-${picture.dataset.panel}`);
  const rows = panel.rows.length;
  let row = 0, column = 0;

  const say = () => {
    const from = new Date((view.begin + column * view.seconds) * 1000).toISOString().slice(0, 16).replace("T", " ");
    const next = view.starts[row + 1] ?? "(last key)";
    line.textContent = `${view.starts[row]} to ${next}, ${from} UTC: ${panel.rows[row][column].toPrecision(3)}/s`;
  };
  const at = (part, count) => Math.min(count - 1, Math.max(0, Math.floor(part * count)));

  picture.addEventListener("pointermove", (event) => {
    const box = picture.getBoundingClientRect();
    row = at((event.clientY - box.top) / box.height, rows);
    column = at((event.clientX - box.left) / box.width, view.columns);
    say();
  });
  const moves = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
  picture.addEventListener("keydown", (event) => {
    const move = moves[event.key];
    if (!move) return;
    event.preventDefault();
    row = Math.min(rows - 1, Math.max(0, row + move[0]));
    column = Math.min(view.columns - 1, Math.max(0, column + move[1]));
    say();
  });
}
