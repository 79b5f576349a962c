"use strict";

const contents = JSON.parse(document.getElementById("contents").textContent);
const state = {
  shown: contents.runs.map(() => true),
  measure: Object.keys(contents.curves)[0],
  now: contents.experiences.length - 1,
};

const byId = (id) => document.getElementById(id);

/** Makes an element; children are elements or text, never HTML. */
function element(name, attributes = {}, ...children) {
  const svg = ["svg", "g", "path", "line", "text", "rect"].includes(name);
  const made = svg
    ? document.createElementNS("http://www.w3.org/2000/svg", name)
    : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

/** Text of a drawing. */
function label(text, x, y, anchor = "middle", more = {}) {
  return element("text", { x, y, "text-anchor": anchor, ...more }, String(text));
}

function tinted(made, run) {
  made.classList.add("run");
  made.style.setProperty("--run", run.color);
  return made;
}

const shownRuns = () => contents.runs.filter((_, i) => state.shown[i]);

const format = (value) => (value === null ? "-" : value.toFixed(1));

/** Mean and deviation, as the tables write them. */
function formatPair(mean, deviation) {
  if (mean === null) return "-";
  return deviation === null
    ? format(mean)
    : `${format(mean)} ± ${format(deviation)}`;
}

/** Paths of radius 1, so that runs differ in more than colour. */
const MARKS = [
  "M-1,0a1,1 0 1,0 2,0a1,1 0 1,0 -2,0z",
  "M-.9,-.9h1.8v1.8h-1.8z",
  "M0,-1.2L1.1,.8H-1.1z",
  "M0,-1.3L1.2,0L0,1.3L-1.2,0z",
  "M0,1.2L1.1,-.8H-1.1z",
  "M-1.2,-.4h.8v-.8h.8v.8h.8v.8h-.8v.8h-.8v-.8h-.8z",
  "M0,-1.25L1.2,-.35L.75,1.05H-.75L-1.2,-.35z",
];
const markOf = (run) =>
  MARKS[[...new Set(contents.runs.map((r) => r.run))].indexOf(run.run) % MARKS.length];

function makeMark(run, x, y, radius = 4) {
  return element("path", {
    class: "mark",
    d: markOf(run),
    transform: `translate(${x},${y}) scale(${radius})`,
    "vector-effect": "non-scaling-stroke",
  });
}

/** The line of a run in small, for legends. */
function makeSample(run) {
  const sample = element("svg", { class: "sample", viewBox: "0 0 34 14", "aria-hidden": "true" });
  sample.append(
    element("path", { class: "line", d: "M1,7H33", "stroke-dasharray": run.dashes }),
    makeMark(run, 17, 7),
  );
  return tinted(sample, run);
}

/** About `count` round numbers from 0 or `low` to `high`. */
function niceTicks(low, high, count, whole = false) {
  const rough = Math.max((high - low) / count, 1e-9);
  const power = 10 ** Math.floor(Math.log10(rough));
  let step = [1, 2, 5, 10].map((f) => f * power).find((s) => s >= rough);
  if (whole) step = Math.max(1, Math.round(step));
  const ticks = [];
  for (let t = Math.ceil(low / step) * step; t <= high + 1e-9; t += step) ticks.push(t);
  return ticks;
}

/** A name that may break after its parts. */
function breakable(name) {
  const parts = name.split(/(?<=[./_])/).flatMap((part) => [part, element("wbr")]);
  return element("span", {}, ...parts);
}

/** A table of text; `cellClass` may name the class of a cell. */
function makeTable(header, rows, cellClass = () => "") {
  const head = element("tr", {}, ...header.map((t) => element("th", { scope: "col" }, t)));
  const lines = rows.map((row, i) => {
    const cells = row.map((text, j) =>
      j === 0
        ? element("th", { scope: "row" }, breakable(text))
        : element("td", { class: cellClass(i, j) }, text),
    );
    return element("tr", {}, ...cells);
  });
  return element("table", {}, element("thead", {}, head), element("tbody", {}, ...lines));
}
