const LEVELS = 10;
const heat = { run: null, seed: 0, at: contents.experiences.length - 1, row: null };

const heatMatrix = () => heat.run.matrices[heat.seed];

/** Classes in the order of the lines. */
function heatRows() {
  const matrix = heatMatrix();
  const classes = contents.classes.map((_, c) => c);
  const key = {
    given: (c) => c,
    learned: (c) => {
      const first = matrix.findIndex((row) => row[c] > 0);
      return first < 0 ? matrix.length : first;
    },
    lost: (c) => -lostOf(c),
  }[byId("matrix-order").value];
  return classes.sort((a, b) => key(a) - key(b) || a - b);
}

/** How far a class is below its best so far. */
function lostOf(c) {
  const known = heatMatrix().slice(0, heat.at + 1).map((row) => row[c] ?? 0);
  return Math.max(...known) - known[known.length - 1];
}

function heatLayout(width) {
  const count = contents.classes.length;
  const longest = Math.max(...contents.classes.map((name) => name.length));
  const named = count <= 100;
  const left = named ? Math.min(width * 0.36, 12 + longest * 6.4) : 8;
  const right = named ? 40 : 8;
  const rowHeight = named ? 16 : Math.max(1, Math.min(4, 900 / count));
  // A page may be narrower than the names.
  const cell = Math.max(0, width - left - right) / contents.experiences.length;
  return { count, named, left, rowHeight, cell, top: 22, height: 22 + count * rowHeight + 6 };
}

function drawMatrix() {
  const svg = byId("matrix");
  if (!heat.run) {
    svg.replaceChildren();
    svg.style.height = "0";
    for (const id of ["matrix-summary", "matrix-cell", "matrix-now"]) byId(id).textContent = "";
    byId("matrix-summary").textContent = "No run is chosen.";
    return;
  }
  const width = Math.min(svg.parentElement.clientWidth, 896);
  const layout = heatLayout(width);
  const { left, top, cell, rowHeight, named } = layout;
  const rows = heatRows();
  const matrix = heatMatrix();
  svg.setAttribute("viewBox", `0 0 ${width} ${layout.height}`);
  svg.style.height = `${layout.height}px`;
  svg.replaceChildren();
  // One path a level: a thousand classes are no more elements than ten.
  const gap = rowHeight > 6 ? 1 : 0;
  const paths = Array(LEVELS).fill("");
  matrix.forEach((values, i) => rows.forEach((c, line) => {
    if (values[c] === null) return;
    const level = Math.min(LEVELS - 1, Math.floor((values[c] / 100) * LEVELS));
    const x = (left + i * cell).toFixed(2);
    const w = Math.max(0.5, cell - gap).toFixed(2);
    paths[level] += `M${x},${(top + line * rowHeight).toFixed(2)}h${w}v${rowHeight - gap}h-${w}z`;
  }));
  paths.forEach((d, level) => { if (d) svg.append(heated(element("path", { d }), level)); });
  const every = Math.max(1, Math.ceil(24 / cell));
  contents.experiences.forEach((experience, i) => {
    if (i % every && i !== heat.at) return;
    if (i !== heat.at && Math.abs(i - heat.at) * cell < 24) return;
    const style = { class: i === heat.at ? "value" : "" };
    svg.append(label(experience, left + (i + 0.5) * cell, 14, "middle", style));
  });
  if (named) drawNames(svg, layout, rows, width);
  drawFrames(svg, layout);
  describeMatrix(rows);
}

/** What is later than the experience chosen is dimmed. */
function drawFrames(svg, { left, top, cell, rowHeight, count }) {
  const rect = (style, x, y, width, height) =>
    svg.append(element("rect", { class: style, x, y, width, height }));
  const after = left + (heat.at + 1) * cell;
  const end = left + contents.experiences.length * cell;
  const height = count * rowHeight;
  rect("later", after, top, Math.max(0, end - after), height);
  rect("frame", after - cell - 0.5, top - 1, cell, height + 1);
  if (heat.row !== null) {
    rect("frame", left - 0.5, top + heat.row * rowHeight - 1, after - left, rowHeight + 1);
  }
}

function drawNames(svg, { left, top, rowHeight }, rows, width) {
  const fits = Math.floor((left - 10) / 6.2);
  rows.forEach((c, line) => {
    const name = contents.classes[c];
    const y = top + line * rowHeight + 11;
    const value = heatMatrix()[heat.at][c];
    const short = name.length > fits ? `${name.slice(0, fits - 1)}…` : name;
    svg.append(
      label(short, left - 6, y, "end"),
      label(format(value), width - 4, y, "end", { class: "value" }),
    );
  });
}

function heated(made, level) {
  made.classList.add("heat");
  made.style.setProperty("--share", `${Math.round((100 * level) / (LEVELS - 1))}%`);
  return made;
}

function describeMatrix(rows) {
  const values = heatMatrix()[heat.at];
  const experience = contents.experiences[heat.at];
  const known = values.filter((value) => value !== null && value > 0);
  const mean = known.reduce((sum, value) => sum + value, 0) / Math.max(1, known.length);
  const lost = contents.classes
    .map((name, c) => [name, lostOf(c)])
    .filter(([, points]) => points >= 0.05)
    .sort((a, b) => b[1] - a[1])
    .slice(0, 3)
    .map(([name, points]) => `${name} (−${points.toFixed(1)})`);
  const last = contents.experiences[contents.experiences.length - 1];
  byId("matrix-now").textContent = `${experience} of ${last}`;
  byId("matrix-summary").textContent = [
    `After experience ${experience}, ${known.length} of ${contents.classes.length} classes are`,
    `recognised, on average in ${mean.toFixed(1)} % of their test patterns.`,
    lost.length ? `Most was lost, since its best, of ${lost.join(", ")}.` : "No class is below its best.",
  ].join(" ");
  byId("matrix-cell").textContent = "";
  if (heat.row === null) return;
  const value = values[rows[heat.row]];
  const accuracy = value === null ? "no test patterns" : `${format(value)} %`;
  byId("matrix-cell").textContent =
    `${contents.classes[rows[heat.row]]}, after experience ${experience}: ${accuracy}`;
}

/** Fills the choice of runs with those that are shown. */
function chooseMatrix() {
  const runs = shownRuns();
  if (!runs.includes(heat.run)) {
    const final = (run) => run.curves.whole.mean[contents.experiences.length - 1];
    heat.run = [...runs].sort((a, b) => final(b) - final(a))[0] ?? null;
    heat.seed = 0;
  }
  byId("matrix-run").replaceChildren(...runs.map((run) => {
    const option = element("option", { value: contents.runs.indexOf(run) }, run.label);
    option.selected = run === heat.run;
    return option;
  }));
  byId("matrix-seed").replaceChildren(...(heat.run?.seeds ?? []).map((seed, i) => {
    const option = element("option", { value: i }, String(seed));
    option.selected = i === heat.seed;
    return option;
  }));
  drawMatrix();
}

function listenToMatrix() {
  const svg = byId("matrix");
  const slider = byId("matrix-slider");
  slider.max = contents.experiences.length - 1;
  slider.value = heat.at;
  const move = (at) => {
    heat.at = Math.max(0, Math.min(contents.experiences.length - 1, at));
    slider.value = heat.at;
    drawMatrix();
  };
  slider.addEventListener("input", () => move(Number(slider.value)));
  byId("matrix-run").addEventListener("change", (event) => {
    heat.run = contents.runs[event.target.value];
    heat.seed = 0;
    chooseMatrix();
  });
  byId("matrix-seed").addEventListener("change", (event) => {
    heat.seed = Number(event.target.value);
    drawMatrix();
  });
  byId("matrix-order").addEventListener("change", drawMatrix);
  const point = (event) => {
    if (!heat.run) return;
    const box = svg.getBoundingClientRect();
    const { left, top, cell, rowHeight, count } = heatLayout(box.width);
    const column = Math.floor((event.clientX - box.left - left) / cell);
    const line = Math.floor((event.clientY - box.top - top) / rowHeight);
    if (line < 0 || line >= count) return;
    heat.row = line;
    if (event.type === "pointerdown" && column >= 0 && column < contents.experiences.length) move(column);
    else drawMatrix();
  };
  svg.addEventListener("pointermove", point);
  svg.addEventListener("pointerdown", point);
  svg.addEventListener("pointerleave", () => { heat.row = null; drawMatrix(); });
  svg.addEventListener("keydown", (event) => {
    const across = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const down = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (!across && !down) return;
    event.preventDefault();
    if (down) heat.row = Math.max(0, Math.min(contents.classes.length - 1, (heat.row ?? -1) + down));
    move(heat.at + (across ?? 0));
  });
  const steps = Array.from({ length: LEVELS }, (_, level) => heated(element("i"), level));
  byId("matrix-legend").append("0 %", element("span", {}, ...steps), "100 %");
}
