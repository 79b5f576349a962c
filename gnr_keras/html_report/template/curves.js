const plot = { left: 40, right: 14, top: 12, bottom: 40 };

function curvesShown() {
  return shownRuns().filter((run) => run.curves[state.measure] !== null);
}

/** Segments of a line, which ends where a value is undefined. */
function linePath(points) {
  let path = "";
  let begun = false;
  for (const [x, y] of points) {
    if (y === null) begun = false;
    else {
      path += `${begun ? "L" : "M"}${x.toFixed(1)},${y.toFixed(1)}`;
      begun = true;
    }
  }
  return path;
}

function bandPath(curve, x, y) {
  const known = curve.mean
    .map((mean, i) => [i, mean, curve.deviation[i]])
    .filter(([, mean, deviation]) => mean !== null && deviation !== null);
  const edge = (sign) =>
    known.map(([i, mean, d]) => `${x(i).toFixed(1)},${y(mean + sign * d).toFixed(1)}`);
  return known.length < 2 ? "" : `M${[...edge(1), ...edge(-1).reverse()].join("L")}z`;
}

/** Positions of evaluations and of percent in a drawing of this size. */
function scales(svg, runs) {
  const width = svg.clientWidth;
  const height = Math.max(240, Math.min(420, width * 0.6));
  const seen = contents.experiences;
  const [low, high] = [seen[0], seen[seen.length - 1]];
  const tops = runs.flatMap(({ curves }) => {
    const { mean, deviation } = curves[state.measure];
    return mean.map((value, i) => (value ?? 0) + (deviation[i] ?? 0));
  });
  const top = Math.min(100, Math.max(10, Math.ceil(Math.max(0, ...tops) / 10) * 10));
  const inner = width - plot.left - plot.right;
  const position = (experience) =>
    plot.left + (high > low ? ((experience - low) / (high - low)) * inner : inner / 2);
  return {
    width,
    height,
    top,
    position,
    x: (i) => position(seen[i]),
    y: (value) =>
      height - plot.bottom -
      (Math.max(0, Math.min(top, value)) / top) * (height - plot.top - plot.bottom),
  };
}

function drawAxes(svg, { width, height, top, position, y }) {
  const right = width - plot.right;
  for (const tick of niceTicks(0, top, 5)) {
    svg.append(
      element("line", { class: "grid", x1: plot.left, x2: right, y1: y(tick), y2: y(tick) }),
      label(tick, plot.left - 6, y(tick) + 4, "end"),
    );
  }
  const seen = contents.experiences;
  const last = seen[seen.length - 1];
  for (const tick of niceTicks(seen[0], last, Math.min(12, width / 60), true)) {
    svg.append(label(tick, position(tick), height - plot.bottom + 18));
  }
  const middle = (plot.top + height - plot.bottom) / 2;
  svg.append(
    label("experience", (plot.left + right) / 2, height - 4),
    label("accuracy (%)", 12, middle, "middle", { transform: `rotate(-90 12 ${middle})` }),
  );
}

function drawCurves() {
  const svg = byId("curves");
  const runs = curvesShown();
  const scale = scales(svg, runs);
  svg.setAttribute("viewBox", `0 0 ${scale.width} ${scale.height}`);
  svg.style.height = `${scale.height}px`;
  svg.replaceChildren();
  drawAxes(svg, scale);
  const groups = runs.map((run) => {
    const curve = run.curves[state.measure];
    const points = curve.mean.map((v, i) => [scale.x(i), v === null ? null : scale.y(v)]);
    const group = tinted(element("g", { "data-run": run.label }), run);
    group.append(
      element("path", { class: "band", d: bandPath(curve, scale.x, scale.y) }),
      element("path", { class: "line", d: linePath(points), "stroke-dasharray": run.dashes }),
    );
    const every = Math.ceil((points.length * 22) / scale.width);
    points.forEach(([x, y], i) => {
      if (y !== null && (i % every === 0 || i === points.length - 1)) {
        group.append(makeMark(run, x, y));
      }
    });
    return group;
  });
  svg.append(...groups);
  if (!runs.length) {
    const text = shownRuns().length ? "These runs replay nothing." : "No run is chosen.";
    svg.append(label(text, scale.width / 2, scale.height / 2));
  }
  svg.append(element("g", { id: "curves-now" }));
  drawNow(scale);
}

/** The line at the experience that is read off, and its numbers. */
function drawNow(given) {
  const svg = byId("curves");
  const runs = curvesShown();
  const scale = given ?? scales(svg, runs);
  const x = scale.x(state.now);
  const mark = byId("curves-now");
  mark.replaceChildren(
    element("line", { class: "now", x1: x, x2: x, y1: plot.top, y2: scale.height - plot.bottom }),
  );
  const rows = runs
    .map((run) => {
      const { mean, deviation } = run.curves[state.measure];
      return { run, mean: mean[state.now], deviation: deviation[state.now] };
    })
    .sort((a, b) => (b.mean ?? -1) - (a.mean ?? -1));
  for (const { run, mean } of rows) {
    if (mean === null) continue;
    const ring = element("path", {
      class: "ring",
      d: MARKS[0],
      transform: `translate(${x},${scale.y(mean)}) scale(7)`,
      "vector-effect": "non-scaling-stroke",
    });
    mark.append(tinted(element("g", {}, ring), run));
  }
  const experience = contents.experiences[state.now];
  byId("readout").replaceChildren(
    element("caption", {}, `After experience ${experience}`),
    element("tbody", {}, ...rows.map(({ run, mean, deviation }) =>
      element("tr", {},
        element("th", { scope: "row" }, makeSample(run), run.label),
        element("td", {}, formatPair(mean, deviation)),
      ))),
  );
  const values = rows.map((row) => `${row.run.label} ${formatPair(row.mean, row.deviation)}`);
  const aria = {
    "aria-valuemin": contents.experiences[0],
    "aria-valuemax": contents.experiences[contents.experiences.length - 1],
    "aria-valuenow": experience,
    "aria-valuetext": [`experience ${experience}`, ...values].join(", "),
  };
  for (const [name, value] of Object.entries(aria)) svg.setAttribute(name, value);
}

function readOff(index) {
  state.now = Math.max(0, Math.min(contents.experiences.length - 1, index));
  drawNow();
}

function listenToCurves() {
  const svg = byId("curves");
  const point = (event) => {
    const at = event.clientX - svg.getBoundingClientRect().left;
    const { x } = scales(svg, curvesShown());
    const distances = contents.experiences.map((_, i) => Math.abs(x(i) - at));
    readOff(distances.indexOf(Math.min(...distances)));
  };
  svg.addEventListener("pointermove", point);
  svg.addEventListener("pointerdown", point);
  svg.addEventListener("keydown", (event) => {
    const last = contents.experiences.length - 1;
    const next = {
      ArrowLeft: state.now - 1, ArrowDown: state.now - 1,
      ArrowRight: state.now + 1, ArrowUp: state.now + 1,
      Home: 0, End: last,
    }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    readOff(next);
  });
  for (const [name, title] of Object.entries(contents.curves)) {
    const input = element("input", { type: "radio", name: "measure", value: name });
    input.checked = name === state.measure;
    input.addEventListener("change", () => { state.measure = name; drawCurves(); });
    byId("measures").append(element("label", {}, input, title));
  }
}
