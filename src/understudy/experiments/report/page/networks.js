  // --- how the networks learned ---------------------------------------------------------------

  // A panel: title, axis, lines (what was told, its name), and what it is and looks like at best.
  const PANELS = [
    ["Return", "return per episode", [["return", "handed out"], ["practice_return", "practice"]],
      "What the environment pays an episode: the policy that is handed out, without noise, and practice since the last mark, with it. Healthy: both climb to the expert’s, the dashed line; practice may fall now and then, what is handed out should not follow it down."],
    ["Learned reward", "learned reward", [["clone_earned", "the clone’s auditions"], ["earned", "the average’s"]],
      "What the discriminator of that moment pays an episode: in the auditions of the clone, and in the average’s latest; means. The clone is handed out where each of its own earned more than any of the average’s; a triangle: in a seed that changed. Healthy: the average comes up to the clone, passes it and stays above. Beside a good clone the two lines lie together."],
    ["Logits of the discriminator", "mean logit", [["expert_logit", "at the expert’s points"], ["agent_logit", "at those of practice"]],
      "How sure the discriminator is that a point is the expert’s, at the expert’s own and at those of the window. Healthy: the expert’s is above, by a few units at most, and both close in on nought; a gap that keeps growing is a discriminator that has won."],
    ["Q", "mean Q", [["q", "Q of the policy’s actions"]],
      "The critics’ estimate of the discounted learned reward to come. Healthy: it levels off; a Q that grows without end has come loose of any reward."],
    ["Step of the policy", "KL", [["kl", "KL to the policy before"]],
      "How far the policy is from the one that it is held to, KL(π ‖ π_old), at the last step of an iteration. Healthy: small, and falling as the rates do; where it climbs, the policy is being thrown about."],
    ["Entropy", "entropy", [["entropy", "entropy of the policy"]],
      "How undecided the policy is, −E log π; with actions in a box it may be below nought. Healthy: it changes slowly and levels off; after a plunge nothing new is tried."],
    ["Missed of the expert’s actions", "cross-entropy", [["missed", "missed"]],
      "How far the policy’s mode is from the expert’s actions at the expert’s states. Healthy: low and level (its least is not nought, for it is a cross-entropy); where it climbs while returns fall, the policy forgets what it was shown."],
    ["The clone’s word", "mean weight", [["held", "weight of the clone’s actions"]],
      "How much the clone’s actions weigh in the actor’s loss at practised states: 1 where they look like the expert’s to the discriminator, less where they do not, times what is left of the actor’s rate. Healthy: it falls to the end of the run; low from the beginning, practice is seldom where the clone knows what to do."],
  ];
  const CAST = [["accent", "solid"], ["bad", "dot"]];

  const chosenEnv = () => data.networks.find((chart) => chart.env === by("networks-env").value);
  const chosenCell = () => chosenEnv().cells[Number(by("networks-cell").value)];

  function drawPanel(node, cell, [, axis, lines]) {
    const shown = lines.filter(([name]) => cell.told[name]);
    const traces = [];
    shown.forEach(([name, title]) => {
      const [colour, dash] = CAST[lines.findIndex(([other]) => other === name)];
      const { mean, std } = cell.told[name];
      const keep = cell.x.map((x, i) => i).filter((i) => mean[i] !== null);
      const x = keep.map((i) => cell.x[i]);
      const [y, apart] = [keep.map((i) => mean[i]), keep.map((i) => std[i])];
      if (cell.seeds > 1) {
        traces.push({
          x: [...x, ...[...x].reverse()], y: [...y.map((m, i) => m + apart[i]), ...y.map((m, i) => m - apart[i]).reverse()],
          fill: "toself", fillcolor: faded(ink(colour), 0.16), line: { width: 0 }, mode: "lines", hoverinfo: "skip", showlegend: false,
        });
      }
      traces.push({
        x, y, name: title, mode: x.length === 1 ? "markers" : "lines", customdata: apart.map((d) => number(d, 2)),
        line: { color: ink(colour), width: 2.2, dash }, hovertemplate: cell.seeds > 1 ? "%{y:.4~g} ± %{customdata}" : "%{y:.4~g}",
      });
    });
    const first = lines[0][0];
    if (first === "return") {
      traces.push({
        x: cell.x, y: cell.x.map(() => cell.expert), mode: "lines", name: "expert",
        line: { color: ink("soft"), dash: "dash", width: 1.5 }, hovertemplate: "%{y:.4~g}",
      });
    }
    if (first === "clone_earned" && cell.leads.length) {
      const marks = cell.leads.flatMap(({ seed, since }) => since.map((n) => [n, seed]));
      const all = traces.flatMap((trace) => trace.y);
      const [low, high] = [Math.min(...all), Math.max(...all)];
      traces.push({ // along the bottom
        x: marks.map(([n]) => n), y: marks.map(() => low - 0.08 * (high - low || 1)), mode: "markers", name: "new lead",
        marker: { symbol: "triangle-up", size: 9, color: ink("good"), opacity: 0.75 },
        customdata: marks.map(([, seed]) => seed), hovertemplate: "seed %{customdata}, after %{x:,}",
      });
    }
    draw(node, traces, layout(
      { title: { text: "interactions" }, range: [0, 1.02 * cell.x[cell.x.length - 1]], nticks: 6, ...whole },
      { title: { text: axis } }, { hovermode: first === "clone_earned" ? "closest" : "x unified", ...(traces.filter((t) => t.name).length > 1 ? legend() : {}) }));
  }

  function drawNetworks() {
    const cell = chosenCell();
    by("networks-title").textContent = `${by("networks-env").value}, ${called(cell.N)}: ${cell.seeds > 1 ? `mean over ${plural(cell.seeds, "seed")}` : "one seed"}`;
    for (const panel of PANELS) {
      const node = by(`network-${panel[2][0][0]}`);
      node.parentElement.hidden = !panel[2].some(([name]) => name !== "return" && cell.told[name]);
      if (!node.parentElement.hidden) drawPanel(node, cell, panel);
    }
  }

  function chooseNetworks() {
    const { cells } = chosenEnv();
    fill(by("networks-cell"), cells.map((cell, i) => String(i)), (i) => `${full(cells[i])} (${plural(cells[i].seeds, "seed")})`);
    by("networks-cell-label").hidden = cells.length < 2;
    const most = Math.max(...cells.map((cell) => Object.keys(cell.told).length));
    by("networks-cell").value = cells.findIndex((cell) => Object.keys(cell.told).length === most); // those who tell most come first
    drawNetworks();
  }

  if (data.networks.length) {
    for (const [title, , lines, said] of PANELS) {
      const node = make("div", { class: "chart", id: `network-${lines[0][0]}`, role: "img", "aria-label": title });
      by("network-charts").append(make("div", {}, make("h3", {}, title), node, make("p", { class: "note" }, said)));
    }
    fill(by("networks-env"), data.networks.map((chart) => chart.env));
    by("networks-env-label").hidden = data.networks.length < 2;
    by("networks-env").addEventListener("change", chooseNetworks);
    by("networks-cell").addEventListener("change", drawNetworks);
    chooseNetworks();
    redraws.push(drawNetworks);
  }
