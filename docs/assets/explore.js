// The interactive page: curves from the table of closed forms in explore-data.js; nothing is fetched.
"use strict";

(() => {
  const page = document.getElementById("explore");
  if (!page || !window.BITLDP) return;
  const table = window.BITLDP;
  const COLOURS = [0, 1, 2, 3, 4, 5, 6].map((place) => `var(--c${place})`);  // of assets/site.css, light or dark

  // Between the points of a grid: linear in logarithms of both.
  const between = (grid, values, at) => {
    if (at <= grid[0]) return values[0];
    const last = grid.length - 1;
    if (at >= grid[last]) return values[last];
    let i = 1;
    while (grid[i] < at) i += 1;
    const share = Math.log(at / grid[i - 1]) / Math.log(grid[i] / grid[i - 1]);
    return Math.exp(Math.log(values[i - 1]) * (1 - share) + Math.log(values[i]) * share);
  };

  // The nearest point of a grid of sizes, and the factor of variances that grow in proportion.
  const nearest = (sizes, size) =>
    sizes.reduce((best, each) => (Math.abs(Math.log(each / size)) < Math.abs(Math.log(best / size)) ? each : best));

  const sliders = Object.fromEntries(
    [...page.querySelectorAll("input")].map((input) => [input.name, input]),
  );
  const chosen = () => ({
    epsilon: 10 ** Number(sliders.epsilon.value),
    dimension: Math.round(10 ** Number(sliders.dimension.value)),
    clients: Math.round(10 ** Number(sliders.clients.value)),
    bits: [2, 4, 8, 10, 16][Number(sliders.bits.value)],
  });
  const short = (x) => (x >= 1e7 || (x < 1e-3 && x > 0) ? x.toExponential(1).replace(".0e", "e").replace("e+", "e") : x.toLocaleString("en", { maximumSignificantDigits: 3 }));

  // Root mean squared error of one coordinate of the mean, at a record's epsilon.
  const curves = ({ dimension, clients, bits }) => {
    const split = (values) => (e) => Math.sqrt(between(table.epsilons, values, e / dimension) / clients);
    // One coordinate of d, sampled: d times the report where it was chosen, zero elsewhere.
    const sampled = (values) => (e) =>
      Math.sqrt((dimension * (between(table.epsilons, values, e) + 1 / 3) - 1 / 3) / clients);
    const found = {};
    for (const [name, values] of Object.entries(table.numbers)) {
      found[name] = dimension === 1 ? split(values) : sampled(values);
    }
    for (const [name, values] of Object.entries(table.words)) {
      found[`${name}, ${bits} bits`] = split(values[bits]);
    }
    return found;
  };

  // As wide as the page, so that words keep their size on a phone.
  const PLOT = { width: 640, height: 340, left: 56, right: 12, top: 12, bottom: 40 };
  const measure = () => {
    PLOT.width = Math.min(Math.max(page.clientWidth || 640, 300), 760);
    PLOT.height = Math.max(260, Math.round(PLOT.width * 0.53));
  };
  const NS = "http://www.w3.org/2000/svg";
  const node = (name, attributes, text) => {
    const made = document.createElementNS(NS, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    return made;
  };

  // A mechanism keeps its colour while the order of the curves changes.
  const met = {};
  const colour = (plot, name) => {
    const names = (met[plot] ||= []);
    const kind = name.replace(/, \d+ bits$/, "");
    if (!names.includes(kind)) names.push(kind);
    return COLOURS[names.indexOf(kind) % COLOURS.length];
  };

  const draw = (name, lines, x, now) => {
    const svg = page.querySelector(`svg[data-plot="${name}"]`);
    svg.setAttribute("viewBox", `0 0 ${PLOT.width} ${PLOT.height}`);
    svg.replaceChildren();
    const all = lines.flatMap((line) => line.values).filter((value) => Number.isFinite(value) && value > 0);
    const low = Math.floor(Math.log10(Math.min(...all)));
    const high = Math.max(low + 1, Math.ceil(Math.log10(Math.max(...all))));
    const [first, last] = [Math.log10(x[0]), Math.log10(x[x.length - 1])];
    const across = (e) =>
      PLOT.left + ((Math.log10(e) - first) / (last - first)) * (PLOT.width - PLOT.left - PLOT.right);
    const up = (value) =>
      PLOT.height - PLOT.bottom - ((Math.log10(value) - low) / (high - low)) * (PLOT.height - PLOT.top - PLOT.bottom);
    const step = Math.ceil((high - low) / 8);
    for (let power = low; power <= high; power += step) {
      const y = up(10 ** power);
      svg.append(node("line", { x1: PLOT.left, x2: PLOT.width - PLOT.right, y1: y, y2: y, class: "grid" }));
      svg.append(node("text", { x: PLOT.left - 6, y: y + 4, "text-anchor": "end" }, short(10 ** power)));
    }
    for (const e of [0.1, 0.2, 0.5, 1, 2, 5, 10].filter((each) => each >= x[0] && each <= x[x.length - 1])) {
      svg.append(node("text", { x: across(e), y: PLOT.height - PLOT.bottom + 16, "text-anchor": "middle" }, e));
    }
    const base = PLOT.height - PLOT.bottom;
    svg.append(node("line", { x1: PLOT.left, x2: PLOT.width - PLOT.right, y1: base, y2: base, class: "axis" }));
    const middle = (PLOT.left + PLOT.width - PLOT.right) / 2;
    svg.append(node("text", { x: middle, y: PLOT.height - 6, "text-anchor": "middle" }, svg.dataset.across));
    svg.append(node("line", { x1: across(now), x2: across(now), y1: PLOT.top, y2: base, class: "now" }));
    const key = page.querySelector(`.key[data-plot="${name}"]`);
    key.replaceChildren();
    lines.forEach((line) => {
      const points = line.values.map((value, j) => `${across(x[j]).toFixed(1)},${up(value).toFixed(1)}`);
      const course = node("path", { d: `M${points.join("L")}` });
      course.style.stroke = colour(name, line.name);
      svg.append(course);
      const entry = document.createElement("span");
      entry.style.setProperty("--line", colour(name, line.name));
      entry.textContent = `${line.name}: ${short(line.now)}`;
      key.append(entry);
    });
  };

  const GRID = Array.from({ length: 61 }, (_, i) => 10 ** (-1 + (2 * i) / 60));
  const show = () => {
    measure();
    const now = chosen();
    for (const [name, value] of Object.entries(now)) {
      page.querySelector(`output[data-of="${name}"]`).textContent = short(value);
    }
    const errors = Object.entries(curves(now)).map(([name, of]) => ({ name, values: GRID.map(of), now: of(now.epsilon) }));
    errors.sort((a, b) => a.now - b.now);
    draw("error", errors, GRID, now.epsilon);
    const bits = now.bits === 2 ? 4 : now.bits;
    const features = nearest(table.features, now.dimension);
    const exact = Object.entries(table.claims).map(([name, of]) => ({
      name,
      values: table.claimed.map((_, i) => of[bits][features][i]),
      now: between(table.claimed, of[bits][features], now.epsilon),
    }));
    exact.push({ name: "what is claimed", values: [...table.claimed], now: now.epsilon });
    draw("claims", exact, table.claimed, now.epsilon);
    page.querySelector("[data-said]").textContent =
      `Records of ${features} ${features === 1 ? "feature" : "features"} of ${bits} bits, claimed epsilon ${short(now.epsilon)}.`;
  };

  for (const input of Object.values(sliders)) input.addEventListener("input", show);
  window.addEventListener("resize", show);
  show();
})();
