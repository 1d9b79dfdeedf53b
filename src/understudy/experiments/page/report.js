"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const by = (id) => document.getElementById(id);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const ink = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  const redraws = []; // all that follows the colour scheme

  // The figures' colours, moved towards the ink as far as the background asks for.
  const style = {};
  function dress() {
    for (const { N, colour, dash } of data.windows) style[N] = { colour: legible(colour), dash };
    for (const node of document.querySelectorAll(".key[data-n]")) node.style.borderColor = style[node.dataset.n].colour;
  }
  const parts = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
  function light(hex) {
    const [r, g, b] = parts(hex).map((v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  }
  function legible(hex) {
    const [from, to, ground] = [parts(hex), parts(ink("ink")), light(ink("paper"))];
    for (let share = 0; share < 1; share += 0.1) {
      const mixed = `#${from.map((v, i) => Math.round(v + (to[i] - v) * share).toString(16).padStart(2, "0")).join("")}`;
      const [high, low] = [Math.max(light(mixed), ground), Math.min(light(mixed), ground)];
      if ((high + 0.05) / (low + 0.05) >= (dark.matches ? 3.2 : 2.1)) return mixed;
    }
    return ink("ink");
  }
  dress();
  redraws.push(dress);

  // --- small tools ------------------------------------------------------------------------

  function make(tag, attributes = {}, ...children) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name === "class") node.className = value;
      else node.setAttribute(name, value);
    }
    node.append(...children);
    return node;
  }

  function number(value, digits = 4) {
    if (value === null || value === undefined) return "–";
    if (value !== 0 && (Math.abs(value) >= 1e10 || Math.abs(value) < 1e-3)) return value.toExponential(2);
    const text = Number(value.toPrecision(digits)).toLocaleString("en", { maximumSignificantDigits: digits });
    return text.replace("-", "−");
  }

  function table(head, rows, name = "") {
    const numeric = (cell) => cell !== null && typeof cell === "object" && "number" in cell;
    const first = rows[0] || [];
    const thead = make("thead", {}, make("tr", {}, ...head.map((text, i) =>
      make("th", { scope: "col", class: numeric(first[i]) ? "number" : "" }, text))));
    const tbody = make("tbody", {}, ...rows.map((row) => make("tr", {}, ...row.map((cell, i) => {
      const td = make("td", { class: numeric(cell) ? "number" : "", "data-name": head[i] });
      td.append(numeric(cell) ? cell.number : cell);
      return td;
    }))));
    return make("div", { class: "scroll" }, make("table", { class: name }, thead, tbody));
  }

  const right = (value) => ({ number: typeof value === "string" ? value : number(value) });
  const called = (N) => `N = ${N}`;
  const full = (of) => called(of.N) + (of.setting ? `, ${of.setting}` : "");
  const unique = (values) => [...new Set(values)];
  const key = (N) => make("span", { class: `key ${style[N].dash}`, "data-n": N, style: `border-color: ${style[N].colour}` });
  const verdict = (holds) => make("span", { class: holds ? "holds" : "fails" }, holds ? "✓ holds" : "✗ does not hold");

  function fill(select, values, shown = (v) => v) {
    const before = select.value;
    select.replaceChildren(...values.map((v) => make("option", { value: v }, shown(v))));
    if (values.includes(before)) select.value = before;
  }

  function faded(hex, alpha) {
    const [r, g, b] = parts(hex);
    return `rgba(${r},${g},${b},${alpha})`;
  }

  function layout(x, y, more = {}) {
    const axis = {
      gridcolor: ink("line"), zerolinecolor: ink("soft"), linecolor: ink("line"), automargin: true,
    };
    return {
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { color: ink("ink"), family: "system-ui, Helvetica, Arial, sans-serif", size: 12 },
      margin: { l: 52, r: 14, t: 12, b: 44 }, showlegend: false, dragmode: "zoom",
      hoverlabel: { bgcolor: ink("raised"), bordercolor: ink("line"), font: { color: ink("ink") } },
      xaxis: { ...axis, ...x }, yaxis: { ...axis, ...y }, ...more,
    };
  }

  const whole = { tickformat: ",~r", hoverformat: ",.0f" };
  function decades(values) { // labels at powers of ten; where they are few, at 2 and 5 too
    const positive = values.filter((v) => v > 0);
    const span = positive.length ? Math.log10(Math.max(...positive) / Math.min(...positive)) : 0;
    return { dtick: span > 1.6 ? 1 : "D2", minor: { showgrid: false } };
  }
  const config = { responsive: true, displaylogo: false, displayModeBar: false };
  const draw = (node, traces, plan) =>
    Plotly.react(node, traces, plan, config).then(() => { node.dataset.drawn = traces.length; });
  const legend = () => ({ showlegend: true, legend: { orientation: "h", yref: "container", y: 0, yanchor: "bottom", font: { size: 12 } } });

  // --- summary, verdicts, skipped ----------------------------------------------------------

  const plural = (n, word) => `${n.toLocaleString("en")} ${word}${n === 1 ? "" : "s"}`;
  by("summary").textContent =
    `${plural(data.runs, "finished run")} in ${plural(data.curves.length, "environment")}` +
    (data.skipped.length ? `; ${plural(data.skipped.length, "folder")} skipped, listed at the end.` : ".");

  for (const { figure, rule, rows } of data.verdicts) {
    const held = rows.filter((v) => v.holds).length;
    by("verdict-table").append(
      make("h3", {}, `${figure ? `${figure}: ` : ""}${held} of ${plural(rows.length, "claim")} hold`),
      rule ? make("p", { class: "note" }, "The deciding rule: ", rule) : "",
      table(["claim", "measured", "verdict"], rows.map((v) => [
        make("span", {}, v.claim, v.rule ? make("span", { class: "rule" }, `Rule: ${v.rule}.`.replace("..", ".")) : ""),
        v.measured, verdict(v.holds)]), "verdicts"));
  }
  if (!data.verdicts.length) {
    by("verdict-table").append(make("p", { class: "note" }, "No verdicts were stored with these runs."));
  }
  by("skipped-list").append(data.skipped.length
    ? make("ul", {}, ...data.skipped.map((text) => make("li", {}, text)))
    : make("p", { class: "note" }, "Nothing was skipped: every folder that looks like a run was read."));

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
    const numbers = make("details", {}, make("summary", {}, "the numbers at the end"),
      table(["N", "return", "±", "seeds", "interactions"], chart.cells.map((c) =>
        [c.N + (c.setting ? `, ${c.setting}` : ""), right(last(c.mean)), right(c.seeds > 1 ? last(c.std) : "–"),
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
  if (!nodes.length) by("curve-charts").append(make("p", { class: "note" }, "There are no finished runs to draw."));

  // --- the regret ledger -------------------------------------------------------------------

  const TERMS = {
    optimisation: "#E69F00", shift: "#D55E00", estimation: "#009E73", demonstrations: "#CC79A7",
    policy: "#0072B2",
  };
  const words = { ail: "AIL regret", reward: "reward regret", policy: "policy regret", tv_step: "largest policy step (TV)" };

  function drawLedger() {
    const env = by("ledger-env").value;
    const ofEnv = data.ledgers.filter((l) => l.env === env);
    fill(by("ledger-n"), unique(ofEnv.map((l) => l.N)));
    const ofN = ofEnv.filter((l) => l.N === by("ledger-n").value);
    fill(by("ledger-setting"), ofN.map((l) => l.setting), (s) => s || "the only one");
    by("ledger-setting-label").hidden = ofN.length < 2;
    const ledger = ofN.find((l) => l.setting === by("ledger-setting").value) || ofN[0];
    const line = (term, dash, width) => ({
      x: ledger.k, y: ledger.terms[term], name: words[term], mode: "lines", type: "scatter",
      line: { color: ink("ink"), dash, width }, hovertemplate: "%{y:,.4~g}",
    });
    const width = ledger.k.map((k, i) => 0.94 * (i ? k - ledger.k[i - 1] : ledger.k.length > 1 ? ledger.k[1] - k : 1));
    const bars = ["optimisation", "shift", "estimation", "demonstrations"].map((term) => ({
      x: ledger.k, y: ledger.terms[term], name: term, type: "bar", width, offset: width.map((w) => -w), marker: { color: TERMS[term], line: { width: 0 } },
      hovertemplate: "%{y:,.4~g}",
    }));
    by("ledger-title").textContent = `${env}, ${full(ledger)}: mean over ${plural(ledger.seeds, "seed")}`;
    draw(by("ledger-chart"), [...bars, line("reward", "solid", 2.4), line("ail", "dash", 2)],
      layout({ title: { text: "updates, k" }, range: [0, 1.02 * ledger.k[ledger.k.length - 1]], ...whole },
        { title: { text: "regret so far" }, tickformat: ",~r" },
        { barmode: "relative", hovermode: "x unified", ...legend() }));
    const bound = (value) => (value === null ? { number: make("span", { class: "word" }, "not covered") } : right(number(value, 3)));
    by("ledger-table").replaceChildren(ledger.bounds.length
      ? table(["term", "measured", "paper’s bound", "sharper bound", "holds"], ledger.bounds.map((b) => {
        const none = b.bound === null && b.sharp_bound === null;
        const mark = none ? "–" : make("span", { class: b.holds ? "holds" : "fails" }, b.holds ? "✓ yes" : "✗ no");
        return [words[b.term] || b.term, right(number(b.measured, 3)), bound(b.bound), bound(b.sharp_bound), mark];
      }))
      : make("p", { class: "note" }, "This run stored no bounds beside its ledger."));
  }

  const without = data.cells - data.ledgers.length;
  if (without && data.cells) {
    by("ledger-note").hidden = false;
    by("ledger-note").textContent = data.ledgers.length
      ? `${without} of ${data.cells} settings kept no ledger, and are not shown here.`
      : "None of these runs kept a ledger, so there is no regret to show. Runs with tables or features keep one unless it is turned off; with networks the true regret is not known.";
  }
  by("ledger-body").hidden = !data.ledgers.length;
  if (!data.cells) {
    by("ledger-note").hidden = false;
    by("ledger-note").textContent = "There are no finished runs.";
  }
  if (data.ledgers.length) {
    fill(by("ledger-env"), unique(data.ledgers.map((l) => l.env)));
    for (const id of ["ledger-env", "ledger-n", "ledger-setting"]) by(id).addEventListener("change", drawLedger);
    drawLedger();
    redraws.push(drawLedger);
  }

  // --- regret against K --------------------------------------------------------------------

  function drawRates() {
    const chart = data.rates.find((c) => c.env === by("rates-env").value);
    const final = chart.kind === "final";
    by("rates-note").textContent = final
      ? "A point is the final regret of runs of that K, mean over seeds; bars are one standard deviation. Dotted: slope ½."
      : "All runs of a window have the same K here, so this is the regret along each run, over its updates k. Slopes are fitted where k ≥ K/10. Such a curve is not quite what the theorem bounds: its step sizes are set for the last k. Dotted: slope ½.";
    const settings = unique(chart.series.map((s) => s.setting));
    const dashes = ["solid", "dot", "dash", "dashdot"];
    const traces = chart.series.map((s) => {
      const keep = s.K.map((k, i) => i).filter((i) => s.K[i] > 0 && s.mean[i] > 0);
      return {
        x: keep.map((i) => s.K[i]), y: keep.map((i) => s.mean[i]), name: full(s), mode: final ? "lines+markers" : "lines",
        line: { color: style[s.N].colour, width: 2.2, dash: settings.length > 1 ? dashes[settings.indexOf(s.setting) % 4] : style[s.N].dash },
        error_y: final ? { array: keep.map((i) => s.std[i]), visible: true, thickness: 1.2 } : undefined,
        hovertemplate: "%{y:,.4~g}",
      };
    });
    const xs = traces.flatMap((t) => t.x);
    const ys = traces.flatMap((t) => t.y);
    if (xs.length) {
      const [low, high, top] = [Math.min(...xs), Math.max(...xs), Math.max(...ys)];
      const from = final ? low : Math.max(low, high / 100);
      traces.push({
        x: [from, high], y: [top * 1.3 * Math.sqrt(from / high), top * 1.3], mode: "lines", name: "slope ½",
        line: { color: ink("soft"), dash: "dot", width: 1.5 }, hoverinfo: "skip",
      });
    }
    draw(by("rates-chart"), traces, layout(
      { title: { text: final ? "updates in all, K" : "updates so far, k" }, type: "log", ...whole, ...decades(xs) },
      { title: { text: "AIL regret" }, type: "log", tickformat: ",~r", ...decades(ys) }, { hovermode: "closest", ...legend() }));
    by("rates-table").replaceChildren(table(["window", "slope", "points fitted"], chart.series.map((s) =>
      [make("span", {}, key(s.N), full(s)), right(s.slope === null ? "too few points" : s.slope.toFixed(2)), right(String(s.points))])));
  }

  by("rates-body").hidden = !data.rates.length;
  if (data.rates.length) {
    fill(by("rates-env"), data.rates.map((c) => c.env));
    by("rates-env").addEventListener("change", drawRates);
    drawRates();
    redraws.push(drawRates);
  } else by("rates-note").textContent = "No run kept a ledger, so there is no regret to fit.";

  // --- methods compared ----------------------------------------------------------------------

  const fixed = (value) => (value === null ? "–" : value.toFixed(2).replace("-", "−"));
  function drawComparison() {
    const { rows, curves } = data.comparisons[Number(by("comparison-env").value)];
    fill(by("comparison-shown"), unique(rows.map((r) => r.shown)));
    const shown = by("comparison-shown").value;
    const traces = curves.filter((c) => c.shown === shown).flatMap((c) => [
      { x: [...c.x, ...c.x.slice().reverse()], y: [...c.high, ...c.low.slice().reverse()], mode: "lines", fill: "toself",
        fillcolor: faded(legible(c.colour), 0.15), line: { width: 0 }, hoverinfo: "skip", showlegend: false },
      { x: c.x, y: c.middle, name: c.title, mode: "lines", line: { color: legible(c.colour), width: 2.2 },
        hovertemplate: "%{y:.2f}" },
    ]);
    draw(by("comparison-chart"), traces, layout(
      { title: { text: "interactions" }, ...whole }, { title: { text: "return / expert’s" } },
      { hovermode: "x unified", ...legend(),
        shapes: [{ type: "line", xref: "paper", x0: 0, x1: 1, y0: 1, y1: 1, line: { color: ink("soft"), dash: "dash", width: 1 } }] }));
    by("comparison-table").replaceChildren(table(
      ["rank", "method", "10%", "25%", "50%", "100%", "95 % interval", "interactions to 0.9", "seconds a run"],
      rows.filter((r) => r.shown === shown).map((r) => [
        right(String(r.rank)), r.title, ...r.shares.map((s) => right(fixed(s))),
        right(r.interval.map(fixed).join(" to ")), right(r.reached),
        right(r.seconds === null ? "–" : number(r.seconds, 3))])));
  }

  by("comparison").hidden = by("comparison-link").hidden = !data.comparisons.length;
  if (data.comparisons.length) {
    fill(by("comparison-env"), data.comparisons.map((c, i) => String(i)), (i) => data.comparisons[i].env);
    by("comparison-env").addEventListener("change", drawComparison);
    by("comparison-shown").addEventListener("change", drawComparison);
    drawComparison();
    redraws.push(drawComparison);
  }

  // --- regret against features -------------------------------------------------------------

  function drawDimensions() {
    const { K, d, series } = data.dimensions;
    const traces = series.map((s) => ({
      x: d, y: s.mean, name: called(s.N), mode: "lines+markers",
      line: { color: style[s.N].colour, width: 2.2, dash: style[s.N].dash }, hovertemplate: "%{y:,.4~g}",
    }));
    draw(by("dimensions-chart"), traces, layout(
      { title: { text: "features, d" }, type: "log", tickvals: d, ticktext: d.map(String) },
      { title: { text: `AIL regret, K = ${K.toLocaleString("en")}` }, type: "log", tickformat: ",~r" },
      { hovermode: "closest", ...legend() }));
    by("dimensions-table").replaceChildren(table(["window", "exponent of d"], series.map((s) =>
      [make("span", {}, key(s.N), called(s.N)), right(s.slope === null ? "too few points" : s.slope.toFixed(2))])));
  }

  by("dimensions").hidden = by("dimensions-link").hidden = !data.dimensions;
  if (data.dimensions) {
    drawDimensions();
    redraws.push(drawDimensions);
  }

  // --- replay ------------------------------------------------------------------------------

  const MOVES = [[0, 0], [-1, 0], [1, 0], [0, -1], [0, 1]]; // stay, up, down, left, right: row, column
  const film = { timer: null, at: [] };

  function mix(from, to, share) {
    const [a, b] = [parts(from), parts(to)];
    return `rgb(${a.map((v, i) => Math.round(v + (b[i] - v) * share)).join(",")})`;
  }

  function board(canvas, n) {
    const size = Math.max(60, canvas.clientWidth);
    const scale = devicePixelRatio || 1;
    canvas.width = canvas.height = Math.round(size * scale);
    const pen = canvas.getContext("2d");
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    return { pen, size, cell: size / n };
  }

  function ringGoal(pen, n, cell) {
    pen.strokeStyle = ink("bad");
    pen.lineWidth = Math.max(2, Math.min(5, cell / 14));
    const inset = pen.lineWidth / 2;
    pen.strokeRect((n - 1) * cell + inset, (n - 1) * cell + inset, cell - 2 * inset, cell - 2 * inset);
  }

  function drawVisits(canvas, run, frame) {
    const { pen, cell } = board(canvas, run.n);
    const values = run.visits[frame];
    for (let s = 0; s < run.n * run.n; s++) {
      const [top, left] = [Math.floor(s / run.n) * cell, (s % run.n) * cell];
      const actions = values.slice(5 * s, 5 * s + 5);
      const visits = actions.reduce((a, b) => a + b, 0);
      const heat = Math.sqrt(Math.min(1, visits / 1000));
      pen.fillStyle = mix(ink("heat-0"), ink("heat-1"), heat);
      pen.fillRect(left, top, cell + 0.5, cell + 0.5);
      if (!visits) continue;
      pen.strokeStyle = pen.fillStyle = heat > 0.5 ? ink("paper") : ink("ink");
      const [y, x] = [top + cell / 2, left + cell / 2];
      actions.forEach((count, a) => {
        const share = count / visits;
        if (share < 0.04) return;
        if (a === 0) {
          pen.beginPath();
          pen.arc(x, y, Math.max(1, cell * 0.15 * share), 0, 2 * Math.PI);
          pen.fill();
          return;
        }
        const [dy, dx] = MOVES[a];
        const reach = cell * (0.08 + 0.34 * share);
        const head = Math.min(0.4 * reach, cell * 0.1);
        pen.lineWidth = Math.max(1, cell * (0.01 + 0.03 * share));
        const [ty, tx] = [y + dy * reach, x + dx * reach];
        pen.beginPath();
        pen.moveTo(x, y);
        pen.lineTo(tx, ty);
        pen.moveTo(tx - dx * head - dy * head, ty - dy * head - dx * head);
        pen.lineTo(tx, ty);
        pen.lineTo(tx - dx * head + dy * head, ty - dy * head + dx * head);
        pen.stroke();
      });
    }
    ringGoal(pen, run.n, cell);
  }

  function drawReward(canvas, run, frame) {
    const { pen, cell } = board(canvas, run.n);
    const values = run.reward[frame];
    const shade = (v) => mix(ink("heat-0"), ink(v < 0 ? "negative" : "reward-1"), Math.min(1, Math.abs(v) / 1000));
    for (let s = 0; s < run.n * run.n; s++) {
      const [t, l] = [Math.floor(s / run.n) * cell, (s % run.n) * cell];
      const [y, x, b, r] = [t + cell / 2, l + cell / 2, t + cell, l + cell];
      const wedges = [null, [l, t, r, t], [l, b, r, b], [l, t, l, b], [r, t, r, b]];
      for (let a = 1; a < 5; a++) {
        const [x1, y1, x2, y2] = wedges[a];
        pen.fillStyle = pen.strokeStyle = shade(values[5 * s + a]);
        pen.lineWidth = 0.5;
        pen.beginPath();
        pen.moveTo(x, y);
        pen.lineTo(x1, y1);
        pen.lineTo(x2, y2);
        pen.closePath();
        pen.fill();
        pen.stroke();
      }
      pen.fillStyle = shade(values[5 * s]);
      pen.fillRect(l + cell * 0.32, t + cell * 0.32, cell * 0.36, cell * 0.36);
      pen.strokeStyle = ink("line");
      pen.lineWidth = 0.5;
      pen.strokeRect(l, t, cell, cell);
    }
    ringGoal(pen, run.n, cell);
  }

  const ofRoom = () => data.replays.filter((r) => r.env === by("replay-env").value);
  const chosen = (side) => ofRoom().find((r) => r.N === by(`replay-${side}`).value);

  function drawReplay() {
    const place = Number(by("replay-mark").value);
    const at = film.at[place];
    const text = at.toLocaleString("en");
    by("replay-at").textContent = text;
    by("replay-mark").setAttribute("aria-valuetext", `${text} interactions`);
    for (const side of ["left", "right"]) {
      const run = chosen(side);
      let frame = 0;
      while (frame + 1 < run.interactions.length && run.interactions[frame + 1] <= at) frame++;
      const sentence = `return ${number(run.returns[frame], 3)}; busiest cell: ${Math.round(100 * run.peak[frame])} % of the time`;
      by(`${side}-state`).textContent = sentence;
      for (const [what, paint] of [["visits", drawVisits], ["reward", drawReward]]) {
        const canvas = by(`${side}-${what}`);
        paint(canvas, run, frame);
        canvas.dataset.frame = frame;
        canvas.setAttribute("aria-label", `${what} in ${run.env}, ${called(run.N)}, after ${text} interactions: ${sentence}`);
      }
    }
    by("reward-scale").textContent = unique(["left", "right"].map((side) => {
      const run = chosen(side);
      return `${number(run.reward_scale, 3)} for ${called(run.N)} (seed ${run.seed}${run.setting ? `, ${run.setting}` : ""})`;
    })).join(" and ");
  }

  function chooseReplay() {
    film.at = unique([...chosen("left").interactions, ...chosen("right").interactions]).sort((a, b) => a - b);
    const slider = by("replay-mark");
    slider.max = film.at.length - 1;
    drawReplay();
  }

  function chooseRoom() {
    const windows = ofRoom().map((r) => r.N);
    for (const side of ["left", "right"]) fill(by(`replay-${side}`), windows);
    by("replay-left").value = windows[0];
    by("replay-right").value = windows[windows.length - 1];
    by("replay-mark").value = 0;
    chooseReplay();
  }

  function play(on) {
    clearInterval(film.timer);
    film.timer = null;
    by("replay-play").textContent = on ? "pause" : "play";
    by("replay-play").setAttribute("aria-pressed", String(on));
    if (!on) return;
    const slider = by("replay-mark");
    if (Number(slider.value) >= film.at.length - 1) slider.value = 0;
    film.timer = setInterval(() => {
      if (Number(slider.value) >= film.at.length - 1) return play(false);
      slider.value = Number(slider.value) + 1;
      drawReplay();
    }, 160);
  }

  by("replay-body").hidden = !data.replays.length;
  if (data.replays.length) {
    fill(by("replay-env"), unique(data.replays.map((r) => r.env)));
    by("replay-env").addEventListener("change", () => { play(false); chooseRoom(); });
    for (const side of ["left", "right"]) by(`replay-${side}`).addEventListener("change", chooseReplay);
    by("replay-mark").addEventListener("input", () => { play(false); drawReplay(); });
    by("replay-play").addEventListener("click", () => play(film.timer === null));
    chooseRoom();
    addEventListener("resize", drawReplay);
    redraws.push(drawReplay);
  } else {
    by("replay-note").hidden = false;
    by("replay-note").textContent = "No run in a grid room kept a replay, so there is nothing to play.";
  }

  // --- the theory explorer -----------------------------------------------------------------

  // The same formulas as theory/bounds.py: `order`, `best_window`, `largest_window`.
  function order({ S, A, H, K, B }, N, sharp) {
    return {
      policy: Math.sqrt(H ** 4 * S ** 2 * A * K),
      optimisation: Math.sqrt(H ** 2 * S * A * K),
      shift: Math.sqrt(H ** 4 * (sharp ? 1 : A ** 2) * (N - 1) ** 2 * K),
      estimation: Math.sqrt((H ** 3 * S * A * K) / (B * N)),
    };
  }
  const formula = ({ S, A, H, B }, sharp) => (sharp ? (S * A) / (H * B) : S / (H * A * B)) ** (1 / 3);
  const bestWindow = (size, sharp) => Math.max(1, formula(size, sharp));
  const largestWindow = (K) => Math.max(1, Math.ceil(Math.sqrt(K)) - 1);

  const SIZES = {
    S: ["states, S", 81, 1, 1e6], A: ["actions, A", 5, 2, 1000], H: ["horizon, H", 27, 1, 10000],
    K: ["updates, K", 10000, 1, 1e8], B: ["trajectories per update, B", 1, 1, 10000],
    N: ["policies reused, N", 4, 1, 10000],
  };
  const size = Object.fromEntries(Object.entries(SIZES).map(([name, [, value]]) => [name, value]));

  function steps(low, high) { // whole numbers, evenly spread on a log scale
    const listed = [];
    const count = 160;
    for (let i = 0; i <= count; i++) listed.push(Math.round(low * (high / low) ** (i / count)));
    return unique(listed);
  }

  const sliders = {};
  for (const [name, [label, value, low, high]] of Object.entries(SIZES)) {
    const stops = steps(low, high);
    const range = make("input", { type: "range", id: `range-${name}`, min: 0, max: stops.length - 1, step: 1, "aria-label": `${label}, slider` });
    const box = make("input", { type: "number", id: `size-${name}`, min: low, max: high, step: 1, value, "aria-label": label });
    const place = () => {
      const nearest = stops.reduce((best, v, i) => (Math.abs(Math.log(v / size[name])) < Math.abs(Math.log(stops[best] / size[name])) ? i : best), 0);
      range.value = nearest;
      range.setAttribute("aria-valuetext", String(size[name]));
    };
    range.addEventListener("input", () => {
      size[name] = stops[Number(range.value)];
      box.value = size[name];
      range.setAttribute("aria-valuetext", String(size[name]));
      drawExplorer();
    });
    box.addEventListener("input", () => {
      const asked = Math.round(Number(box.value));
      if (!(asked >= low && asked <= high)) return;
      size[name] = asked;
      place();
      drawExplorer();
    });
    box.addEventListener("change", () => { box.value = size[name]; });
    sliders[name] = place;
    by("explorer-controls").append(make("div", { class: "slider" }, make("span", {}, label), range, box));
    place();
  }

  function drawExplorer() {
    const most = largestWindow(size.K);
    const stars = { paper: bestWindow(size, false), sharp: bestWindow(size, true) };
    for (const kind of ["paper", "sharp"]) {
      by(`star-${kind}`).textContent = stars[kind].toFixed(2);
      by(`star-${kind}`).dataset.value = String(stars[kind]);
    }
    const notes = [`Regret is sublinear for N below √K: at most N = ${most.toLocaleString("en")} here.`];
    const low = formula(size, false);
    if (low < 1) notes.push(`The paper’s formula gives ${number(low, 2)}; one policy is the least.`);
    if (size.N > most) notes.push(`The chosen N = ${size.N.toLocaleString("en")} is beyond that.`);
    by("star-note").textContent = notes.join(" ");

    const end = Math.max(most, 2, Math.ceil(stars.sharp), size.N);
    const at = steps(1, end);
    const term = (name, sharp) => at.map((N) => order(size, N, sharp)[name] || null);
    const total = (sharp) => at.map((N) => Object.values(order(size, N, sharp)).reduce((a, b) => a + b, 0));
    const line = (name, y, colour, dash, width = 2.2) => ({
      x: at, y, name, mode: "lines", line: { color: colour, dash, width }, hovertemplate: "%{y:.3~g}",
    });
    const traces = [
      line("policy", term("policy", false), TERMS.policy, "solid"),
      line("optimisation", term("optimisation", false), TERMS.optimisation, "solid"),
      line("estimation", term("estimation", false), TERMS.estimation, "solid"),
      line("shift, paper", term("shift", false), TERMS.shift, "solid"),
      line("shift, sharper", term("shift", true), TERMS.shift, "dot"),
      line("total, paper", total(false), ink("ink"), "solid", 1.3),
      line("total, sharper", total(true), ink("ink"), "dot", 1.3),
    ];
    const upright = (N, dash, colour) => ({
      type: "line", x0: N, x1: N, yref: "paper", y0: 0, y1: 1, line: { color: colour, dash, width: 1.5 },
    });
    const label = (N, text, y) => ({
      x: Math.log10(N), y, yref: "paper", text, showarrow: false, bgcolor: ink("paper"), font: { size: 11 },
      xanchor: N > end ** 0.7 ? "right" : "left", xshift: N > end ** 0.7 ? -3 : 3,
    });
    draw(by("explorer-chart"), traces, layout(
      { title: { text: "policies reused, N" }, type: "log", ...whole, ...decades([1, end]), range: [0, Math.log10(end)] },
      { title: { text: "bound, constants dropped" }, type: "log", exponentformat: "power", dtick: 1 },
      {
        hovermode: "x unified", ...legend(),
        shapes: [upright(stars.paper, "solid", ink("soft")), upright(stars.sharp, "dot", ink("soft")), upright(size.N, "dash", ink("accent"))],
        annotations: [label(stars.paper, "N* paper", 0.02), label(stars.sharp, "N* sharper", 0.1), label(size.N, "your N", 0.18)],
      }));
    const [paper, sharp] = [order(size, size.N, false), order(size, size.N, true)];
    const sum = (terms) => Object.values(terms).reduce((a, b) => a + b, 0);
    by("explorer-table").replaceChildren(table([`at N = ${size.N.toLocaleString("en")}`, "paper’s bound", "sharper bound"], [
      ...Object.keys(paper).map((name) => [name, right(number(paper[name], 3)), right(number(sharp[name], 3))]),
      ["total", right(number(sum(paper), 3)), right(number(sum(sharp), 3))],
    ]));
  }
  drawExplorer();
  redraws.push(drawExplorer);

  dark.addEventListener("change", () => redraws.forEach((redraw) => redraw()));
  document.documentElement.dataset.ready = "yes";
})();
