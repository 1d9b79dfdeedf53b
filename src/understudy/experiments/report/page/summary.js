  // --- summary, verdicts, skipped, and what there is nothing for ------------------------------

  by("summary").textContent =
    `${plural(data.runs, "finished run")} in ${plural(data.curves.length, "environment")}` +
    (data.skipped.length ? `; ${plural(data.skipped.length, "folder")} skipped, listed at the end.` : ".");

  for (const { figure, rule, rows, readings } of data.verdicts) {
    const held = rows.filter((v) => v.holds).length;
    by("verdict-table").append(
      make("h3", {}, `${figure ? `${figure}: ` : ""}${held} of ${plural(rows.length, "claim")} hold`),
      rule ? make("p", { class: "note" }, "The deciding rule: ", rule) : "",
      table(["claim", "measured", "verdict"], rows.map((v) => [
        make("span", {}, v.claim, v.rule ? make("span", { class: "rule" }, `Rule: ${v.rule}.`.replace("..", ".")) : ""),
        v.measured, verdict(v.holds)]), "stacked"));
    if (readings) by("verdict-table").append(
      make("h3", {}, `${figure}: the same claims, as the figure can be read`),
      table(["claim", ...readings.columns], readings.rows.map((row) => [row.claim,
        ...row.cells.map((one) => make("span", {}, verdict(one.holds), make("span", { class: "rule" }, one.measured)))]), "stacked"));
  }
  by("skipped-list").append(data.skipped.length
    ? make("ul", {}, ...data.skipped.map((text) => make("li", {}, text)))
    : make("p", { class: "note" }, "Nothing was skipped: every folder that looks like a run was read."));

  const parts_of_page = {
    verdicts: [data.verdicts.length, "verdicts (nothing was judged)"],
    curves: [data.curves.length, "learning curves (no run is finished)"],
    networks: [data.networks.length, "how networks learned (no run has networks)"],
    comparison: [data.comparisons.length, "methods compared (no comparison is stored)"],
    ledger: [data.ledgers.length, "the regret ledger and regret against K (no run kept a ledger; with networks the true regret is not known)"],
    rates: [data.rates.length, ""],
    dimensions: [data.dimensions, "regret against features (no linear MDPs of several d)"],
    replay: [data.replays.length, "the replay (no run in a grid room kept one)"],
    explorer: [data.finite, "the theory explorer (it is about finite MDPs)"],
  };
  const left = [];
  for (const [id, [there, why]] of Object.entries(parts_of_page)) {
    by(id).hidden = document.querySelector(`nav a[href="#${id}"]`).hidden = !there;
    if (!there && why) left.push(why);
  }
  by("left-out").hidden = !left.length;
  by("left-out").textContent = `Not on this page: ${left.join("; ")}.`;
