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
  by("ledger-note").hidden = !without;
  by("ledger-note").textContent = `${without} of ${data.cells} settings kept no ledger, and are not shown here.`;
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

  if (data.rates.length) {
    fill(by("rates-env"), data.rates.map((c) => c.env));
    by("rates-env").addEventListener("change", drawRates);
    drawRates();
    redraws.push(drawRates);
  }
