  // --- learning curves ---------------------------------------------------------------------

  const curves = { hidden: new Set(), log: false, setting: "" };
  const everySetting = unique(data.curves.flatMap((c) => c.cells.map((cell) => cell.setting)));
  const drawn = new Set();

  function drawCurves(chart, node) {
    const here = curves.setting && chart.cells.some((c) => c.setting === curves.setting);
    const shown = chart.cells.filter((c) => !curves.hidden.has(c.N) && (!here || c.setting === curves.setting));
    const settings = unique(shown.map((c) => c.setting));
    const dashes = ["solid", "dot", "dash", "dashdot", "longdash", "longdashdot"];
    const end = Math.max(...chart.cells.map((c) => c.x[c.x.length - 1]));
    const start = Math.min(...chart.cells.map((c) => c.x.find((x) => x > 0) || 1));
    const traces = [];
    for (const cell of shown) {
      const { colour, dash } = style[cell.N];
      const keep = cell.x.map((x, i) => i).filter((i) => cell.mean[i] !== null && (!curves.log || cell.x[i] > 0));
      const x = keep.map((i) => cell.x[i]);
      const mean = keep.map((i) => cell.mean[i]);
      const std = keep.map((i) => cell.std[i]);
      if (cell.seeds > 1) {
        traces.push({
          x: [...x, ...[...x].reverse()],
          y: [...mean.map((m, i) => m + std[i]), ...mean.map((m, i) => m - std[i]).reverse()],
          fill: "toself", fillcolor: faded(colour, 0.18), line: { width: 0 }, mode: "lines", hoverinfo: "skip",
        });
      }
      traces.push({
        x, y: mean, customdata: std.map((d, i) => (d > 1e-6 * Math.abs(mean[i]) ? number(d, 2) : "0")), name: full(cell), mode: x.length === 1 ? "markers" : "lines",
        line: { color: colour, width: 2.2, dash: settings.length > 1 ? dashes[settings.indexOf(cell.setting) % 6] : dash },
        hovertemplate: cell.seeds > 1 ? "%{y:.4~g} ± %{customdata}" : "%{y:.4~g}",
      });
    }
    for (const cell of shown.filter((c) => c.last_return)) {
      const keep = cell.x.map((x, i) => i).filter((i) => cell.last_return[i] !== null && (!curves.log || cell.x[i] > 0));
      traces.push({
        x: keep.map((i) => cell.x[i]), y: keep.map((i) => cell.last_return[i]), name: `${full(cell)}, last iterate`, mode: "lines",
        line: { color: faded(style[cell.N].colour, 0.55), width: 1.2, dash: "dot" }, hovertemplate: "%{y:.4~g}",
      });
    }
    const longest = chart.cells.reduce((a, b) => (b.x[b.x.length - 1] > a.x[a.x.length - 1] ? b : a));
    const along = longest.x.filter((x) => x > 0 || !curves.log); // a point at each mark, to hover over
    for (const expert of chart.expert) {
      traces.push({
        x: along, y: along.map(() => expert), mode: "lines", name: "expert",
        line: { color: ink("soft"), dash: "dash", width: 1.5 }, hovertemplate: "%{y:.4~g}",
      });
    }
    const range = curves.log ? [Math.log10(start), Math.log10(Math.max(end, start * 1.01)) + 0.02] : [0, end * 1.02];
    const x = { title: { text: "interactions" }, type: curves.log ? "log" : "linear", range, nticks: 6, ...whole };
    if (curves.log) Object.assign(x, decades([start, end]));
    node.dataset.lines = shown.length;
    node.dataset.scale = x.type;
    draw(node, traces, layout(x, { title: { text: "return per episode" } }, { hovermode: "x unified" }));
  }

  const nodes = data.curves.map((chart) => {
    const node = make("div", { class: "chart", role: "img", "aria-label": `Learning curves in ${chart.env}` });
    const last = (list) => list[list.length - 1];
    const beside = Object.entries({ gap: "gap", last_return: "last iterate’s return", last_gap: "its gap" })
      .filter(([name]) => chart.cells.some((c) => c[name]));
    const numbers = make("details", {}, make("summary", {}, "the numbers at the end"),
      table(["N", "return", "±", ...beside.map(([, title]) => title), "seeds", "interactions"], chart.cells.map((c) =>
        [c.N + (c.setting ? `, ${c.setting}` : ""), right(last(c.mean)), right(c.seeds > 1 ? last(c.std) : "–"),
          ...beside.map(([name]) => right(c[name] ? number(last(c[name]), 3) : "–")),
          right(String(c.seeds)), right(last(c.x).toLocaleString("en"))])));
    const title = `${chart.env} (expert ${chart.expert.map((e) => number(e, 3)).join(", ")})`;
    by("curve-charts").append(make("div", {}, make("h3", {}, title), node, numbers));
    return { chart, node };
  });
  const seen = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) {
      const entry = nodes.find((each) => each.node === target);
      if (isIntersecting && !drawn.has(entry)) {
        drawn.add(entry);
        drawCurves(entry.chart, entry.node);
      }
    }
  }, { rootMargin: "800px" });
  nodes.forEach(({ node }) => seen.observe(node));
  const drawAllCurves = () => drawn.forEach(({ chart, node }) => drawCurves(chart, node));
  redraws.push(drawAllCurves);

  for (const { N } of data.windows) {
    const button = make("button", { type: "button", class: "toggle", "aria-pressed": "true", "data-n": N }, key(N), called(N));
    button.addEventListener("click", () => {
      const on = curves.hidden.has(N);
      curves.hidden[on ? "delete" : "add"](N);
      button.setAttribute("aria-pressed", String(on));
      drawAllCurves();
    });
    by("toggles").append(button);
  }
  for (const log of [false, true]) {
    by(log ? "x-log" : "x-linear").addEventListener("click", () => {
      curves.log = log;
      by("x-log").setAttribute("aria-pressed", String(log));
      by("x-linear").setAttribute("aria-pressed", String(!log));
      drawAllCurves();
    });
  }
  if (everySetting.length > 1) {
    by("curve-setting-label").hidden = false;
    fill(by("curve-setting"), ["", ...everySetting.filter((s) => s)], (s) => s || "all (by line style)");
    if (everySetting.length > 6) { // too many lines to tell apart
      curves.setting = by("curve-setting").value = everySetting[everySetting.length - 1];
    }
    by("curve-setting").addEventListener("change", (event) => { curves.setting = event.target.value; drawAllCurves(); });
  }

