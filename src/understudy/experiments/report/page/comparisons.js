  // --- methods compared ----------------------------------------------------------------------

  const fixed = (value) => (value === null ? "–" : value.toFixed(2).replace("-", "−"));
  function drawComparison() {
    const { rows, curves, executed } = data.comparisons[Number(by("comparison-env").value)];
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
      ["rank", "method", "10%", "25%", "50%", "100%", "95 % interval", "interactions to 0.9", "P(ours higher)", "seconds a run"],
      rows.filter((r) => r.shown === shown).map((r) => [
        right(String(r.rank)), r.title, ...r.shares.map((s) => right(fixed(s))),
        right(r.interval.map(fixed).join(" to ")), right(r.reached),
        right(r.below ? `${fixed(r.below[0])} (${fixed(r.below[1])} to ${fixed(r.below[2])})` : "–"),
        right(r.seconds === null ? "–" : number(r.seconds, 3))]), "stacked"));
    by("comparison-work").hidden = !executed.length;
    by("comparison-executed").replaceChildren(table(
      ["method", "policy steps an interaction", "reward steps an interaction", "batch", "actor", "critics", "begins with"],
      executed.map((e) => [e.title, right(e.policy_steps), right(e.reward_steps), right(e.batch), e.actor, e.critics, e.begins]), "stacked"));
  }

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

  if (data.dimensions) {
    drawDimensions();
    redraws.push(drawDimensions);
  }
