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
