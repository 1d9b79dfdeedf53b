  // --- the theory explorer -----------------------------------------------------------------

  // The same formulas as theory/bounds.py: `order`, `proven`, `best_window`, `largest_window`.
  function order({ S, A, H, K, B }, N, sharp) {
    return {
      policy: Math.sqrt(H ** 4 * S ** 2 * A * K),
      optimisation: Math.sqrt(H ** 2 * S * A * K),
      shift: Math.sqrt(H ** 4 * (sharp ? 1 : A ** 2) * (N - 1) ** 2 * K),
      estimation: Math.sqrt((H ** 3 * S * A * K) / (B * N)),
    };
  }
  function proven({ S, A, H, K, B }, N) {
    const sampled = Math.sqrt(H ** 2 * S * A * K);
    return {
      policy: Math.sqrt(H ** 4 * K),
      optimisation: sampled,
      shift: (N - 1) * Math.min(Math.sqrt(H ** 4 * K), sampled),
      estimation: sampled / Math.sqrt(B) + (N - 1) * sampled,
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
    const notes = [`With Eq. 5 regret is sublinear for N below √K: at most N = ${most.toLocaleString("en")} here.`];
    const low = formula(size, false);
    if (low < 1) notes.push(`The paper’s formula gives ${number(low, 2)}; one policy is the least.`);
    if (size.N > most) notes.push(`The chosen N = ${size.N.toLocaleString("en")} is beyond that.`);
    by("star-note").textContent = notes.join(" ");

    const end = Math.max(most, 2, Math.ceil(stars.sharp), size.N);
    const at = steps(1, end);
    const term = (name, sharp) => at.map((N) => order(size, N, sharp)[name] || null);
    const held = (name) => at.map((N) => proven(size, N)[name] || null);
    const total = (sharp) => at.map((N) => Object.values(order(size, N, sharp)).reduce((a, b) => a + b, 0));
    const line = (name, y, colour, dash, width = 2.2) => ({
      x: at, y, name, mode: "lines", line: { color: colour, dash, width }, hovertemplate: "%{y:.3~g}",
    });
    const traces = [
      line("policy", term("policy", false), TERMS.policy, "solid"),
      line("optimisation", term("optimisation", false), TERMS.optimisation, "solid"),
      line("estimation, printed", term("estimation", false), TERMS.estimation, "solid"),
      line("estimation, proven", held("estimation"), TERMS.estimation, "dash"),
      line("shift, paper", term("shift", false), TERMS.shift, "solid"),
      line("shift, proven", held("shift"), TERMS.shift, "dash"),
      line("total, paper", total(false), ink("ink"), "solid", 1.3),
      line("total, proven", at.map((N) => Object.values(proven(size, N)).reduce((a, b) => a + b, 0)), ink("ink"), "dash", 1.3),
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
    const [paper, sharp, held_at] = [order(size, size.N, false), order(size, size.N, true), proven(size, size.N)];
    const sum = (terms) => Object.values(terms).reduce((a, b) => a + b, 0);
    by("explorer-table").replaceChildren(table([`at N = ${size.N.toLocaleString("en")}`, "paper’s bound", "sharper bound", "proven for reuse"], [
      ...Object.keys(paper).map((name) => [name, ...[paper, sharp, held_at].map((terms) => right(number(terms[name], 3)))]),
      ["total", ...[paper, sharp, held_at].map((terms) => right(number(sum(terms), 3)))],
    ]));
  }
  drawExplorer();
  redraws.push(drawExplorer);
