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
  const plural = (n, word) => `${n.toLocaleString("en")} ${word}${n === 1 ? "" : "s"}`;
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
