function drawTable() {
  const [header, ...rows] = contents.table;
  const shown = rows.filter((_, i) => state.shown[i]);
  const papers = header.map((name) => name.endsWith("in the paper"));
  const compared = header.map((name, j) => !papers[j] && /^(final|average)/.test(name));
  const best = header.map((_, j) =>
    compared[j] ? Math.max(...shown.map((row) => parseFloat(row[j])).filter(isFinite)) : null);
  byId("table").replaceChildren(makeTable(header, shown, (i, j) => {
    if (papers[j]) return "paper";
    return compared[j] && shown.length > 1 && parseFloat(shown[i][j]) === best[j] ? "best" : "";
  }));
}

const PHASE_COLORS = {
  data: ["#c9ced4"],
  front: ["#56b4e9"],
  classifier: ["#0072b2", "#ffffff"],
  generator: ["#e69f00"],
  replay: ["#cc79a7"],
  evaluation: ["#009e73", "#000000"],
  other: ["#8d949c"],
};
const EXTRA_COLORS = ["#f0e442", "#d55e00", "#8c8c8c"];

function phaseNames() {
  const names = new Set(contents.runs.flatMap((run) => Object.keys(run.seconds)));
  names.delete("total");
  const order = Object.keys(PHASE_COLORS);
  const rank = (name) => (order.includes(name) ? order.indexOf(name) : order.length - 1.5);
  return [...names].sort((a, b) => rank(a) - rank(b));
}

function phaseColor(made, name) {
  const extra = phaseNames().filter((phase) => !(phase in PHASE_COLORS));
  const [background, text] = PHASE_COLORS[name] ?? [EXTRA_COLORS[extra.indexOf(name) % EXTRA_COLORS.length]];
  made.style.setProperty("--phase", background);
  if (text) made.style.setProperty("--on-phase", text);
  return made;
}

function drawTime() {
  const names = phaseNames();
  const runs = shownRuns();
  const longest = Math.max(1e-9, ...runs.map((run) => run.seconds.total));
  byId("time").replaceChildren(...runs.map((run) => {
    const bar = element("div", { class: "bar" });
    for (const name of names) {
      const seconds = run.seconds[name] ?? 0;
      const percent = (100 * seconds) / longest;
      const part = phaseColor(element("div", { title: `${name}: ${seconds.toFixed(1)} s` }, name), name);
      part.style.width = `${percent}%`;
      if ((percent / 100) * byId("time").clientWidth * 0.7 < name.length * 8) part.className = "narrow";
      bar.append(part);
    }
    return element("div", { class: "bar-row" },
      element("span", {}, run.label), bar,
      element("span", { class: "total" }, `${run.seconds.total.toFixed(1)} s`));
  }));
  byId("time-table").replaceChildren(makeTable(
    ["run", ...names, "total"],
    runs.map((run) => [run.label, ...[...names, "total"].map((name) => (run.seconds[name] ?? 0).toFixed(1))]),
  ));
}

function drawTimeLegend() {
  byId("time-legend").append(...phaseNames().map((name) => {
    const swatch = phaseColor(element("i"), name);
    swatch.style.background = "var(--phase)";
    return element("span", {}, swatch, name);
  }));
}

/** One line a value: the runs that have it. Those without one are left out. */
function configTable(rows, indices) {
  const table = makeTable(["name", "value", "runs"], []);
  for (const { binding, values } of rows) {
    const distinct = [...new Set(indices.map((i) => values[i]))].filter((value) => value !== null);
    distinct.forEach((value, k) => {
      const line = element("tr");
      const span = { scope: "rowgroup", rowspan: distinct.length };
      if (k === 0) line.append(element("th", span, breakable(binding)));
      const labels = indices.filter((i) => values[i] === value).map((i) => contents.runs[i].label);
      const spans = labels.map((name, k) => element("span", {}, k + 1 < labels.length ? `${name};` : name));
      const runs = element("td", { class: "runs-with" }, ...spans.flatMap((span) => [span, " "]));
      line.append(element("td", {}, value), runs);
      table.tBodies[0].append(line);
    });
  }
  const region = { class: "scroll", tabindex: "0", role: "region", "aria-label": "Values that differ" };
  return element("div", region, table);
}

function drawConfigs() {
  const known = contents.runs.map((_, i) => i).filter((i) =>
    state.shown[i] && !contents.unknown_configs.includes(contents.runs[i].label));
  const differ = contents.configs.filter(({ values }) => new Set(known.map((i) => values[i])).size > 1);
  const inAll = differ.filter(({ values }) => known.every((i) => values[i] !== null));
  const inSome = differ.filter((row) => !inAll.includes(row));
  const notes = [];
  if (known.length < 2) notes.push("Choose at least two runs to compare.");
  else if (!differ.length) notes.push("All values of these runs are the same.");
  else if (!inAll.length) notes.push("Of the values that all of these runs read, none differs.");
  const unknown = contents.unknown_configs.join(", ");
  if (unknown) notes.push(`There is no config.gin of ${unknown}.`);
  byId("configs-note").textContent = notes.join(" ");
  byId("configs").replaceChildren();
  if (inAll.length) byId("configs").append(configTable(inAll, known));
  if (inSome.length) {
    const count = inSome.length === 1 ? "One value that" : `${inSome.length} values that`;
    byId("configs").append(element("details", {},
      element("summary", {}, `${count} only some of these runs read`), configTable(inSome, known)));
  }
}
