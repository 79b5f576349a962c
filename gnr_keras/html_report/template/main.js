function drawAll() {
  drawCurves();
  chooseMatrix();
  drawTable();
  drawTime();
  drawConfigs();
}

function listenToFilter() {
  const boxes = contents.runs.map((run, i) => {
    const box = element("input", { type: "checkbox" });
    box.checked = true;
    box.addEventListener("change", () => {
      state.shown[i] = box.checked;
      drawAll();
    });
    byId("runs").append(element("label", {}, box, makeSample(run), run.label));
    return box;
  });
  for (const [id, value] of [["all", true], ["none", false]]) {
    byId(id).addEventListener("click", () => {
      boxes.forEach((box, i) => { box.checked = state.shown[i] = value; });
      drawAll();
    });
  }
}

byId("facts").append(...contents.facts.map(([name, value]) =>
  element("div", {}, element("dt", {}, name), element("dd", {}, value))));
byId("notes").append(...contents.notes.map((text) => element("p", { class: "note" }, text)));
byId("command").textContent = contents.command;
listenToFilter();
listenToCurves();
listenToMatrix();
drawTimeLegend();
drawAll();
// Not the window's resize event: a scroll bar that appears is none.
let width = document.body.clientWidth;
new ResizeObserver(() => {
  // Of a page that is hidden there is nothing to draw.
  if ([0, width].includes(document.body.clientWidth)) return;
  width = document.body.clientWidth;
  drawAll();
}).observe(document.body);
