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

  if (data.replays.length) {
    fill(by("replay-env"), unique(data.replays.map((r) => r.env)));
    by("replay-env").addEventListener("change", () => { play(false); chooseRoom(); });
    for (const side of ["left", "right"]) by(`replay-${side}`).addEventListener("change", chooseReplay);
    by("replay-mark").addEventListener("input", () => { play(false); drawReplay(); });
    by("replay-play").addEventListener("click", () => play(film.timer === null));
    chooseRoom();
    addEventListener("resize", drawReplay);
    redraws.push(drawReplay);
  }
