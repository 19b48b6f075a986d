// The live form: answers become reports here, by the client that bitldp ships; nothing is fetched and nothing is sent.
"use strict";

(async () => {
  const page = document.getElementById("private-form");
  const data = window.BITLDP_FORM;
  if (!page || !data) return;
  const part = (selector) => page.querySelector(selector);
  const said = part("[data-said]");
  if (!data.module) {
    said.textContent = "The form is off: this site was built without bitldp.wasm.";
    return;
  }
  const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));

  // A page that was opened from a folder may load no module from a file, but one from its own text.
  const open = async () => {
    const { Client } = await import(`data:text/javascript;base64,${data.script}`);
    return Client.open(data.document, { wasm: bytes(data.module) });
  };
  let client;
  try {
    client = await open();
  } catch (error) {
    said.textContent = `This browser does not open the document (${error.kind ?? error.name}).`;
    return;
  }
  const read = JSON.parse(data.document);
  const fields = read.report.fields;
  const labels = client.labels[0];
  const double = (bits) => new Float64Array(new BigUint64Array([BigInt(`0x${bits}`)]).buffer)[0];
  const [low, high] = read.parts[1].record.interval.map(double);

  const form = part("form");
  form.transport.append(...labels.map((label) => new Option(label)));
  Object.assign(form.minutes, { min: low, max: high });
  said.textContent = `Your browser checked the document and computed ε = ${client.epsilon.toPrecision(6).replace(/\.?0+$/, "")} from its integers.`;
  const times = (Math.ceil(Math.exp(client.epsilon) * 10) / 10).toFixed(1);

  const table = part("table");
  let sent = 0;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const report = await client.randomize(form.transport.value, Number(form.minutes.value));
    const row = document.createElement("tr");
    const written = (base, width) => [...report].map((byte) => byte.toString(base).padStart(width, "0")).join(" ");
    for (const text of [(sent += 1), written(16, 2), written(2, 8)]) row.insertCell().textContent = text;
    table.tBodies[0].prepend(row);
    while (table.rows.length > 6) table.deleteRow(-1);
    table.hidden = false;
    part("[data-promise]").textContent =
      `A real form would send these ${report.length} bytes and nothing else. They are at most ${times} times as likely with your answers as with any others.`;
  });

  // Codes of b bits, the highest first, as the reports of one call lie behind each other.
  const unpacked = (packed, count, bits) => {
    const codes = new Uint32Array(count);
    for (let at = 0; at < count * bits; at += 1) {
      const index = Math.floor(at / bits);
      codes[index] = (codes[index] << 1) | ((packed[at >> 3] >> (7 - (at & 7))) & 1);
    }
    return codes;
  };

  // Mean and standard error of what the reports stand for, alone.
  const estimate = (codes, values) => {
    let sum = 0, squares = 0;
    for (const code of codes) {
      sum += values[code];
      squares += values[code] ** 2;
    }
    const mean = sum / codes.length;
    return { mean, error: Math.sqrt(Math.max(squares / codes.length - mean ** 2, 0) / (codes.length - 1)) };
  };

  // People as this page makes them up: half, three and two tenths, and between ten and forty minutes.
  const SHARES = [0.5, 0.3, 0.2];
  const invented = (people) => {
    const ways = new Uint8Array(people), minutes = new Float64Array(people);
    for (let each = 0; each < people; each += 1) {
      const drawn = Math.random();
      ways[each] = drawn < SHARES[0] ? 0 : drawn < SHARES[0] + SHARES[1] ? 1 : 2;
      minutes[each] = 10 + 30 * Math.random();
    }
    return { ways, minutes };
  };

  const NS = "http://www.w3.org/2000/svg";
  const node = (name, attributes, text) => {
    const made = document.createElementNS(NS, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    return made;
  };
  const percent = (share) => `${(100 * share).toFixed(1)} %`;

  const draw = (rows) => {
    const svg = part("svg");
    const width = Math.min(Math.max(page.clientWidth || 640, 300), 760), left = 64, right = 150, step = 40;
    const across = (share) => left + Math.min(Math.max((share + 0.2) / 1.2, 0), 1) * (width - left - right);
    const bottom = rows.length * step + 12;
    svg.setAttribute("viewBox", `0 0 ${width} ${bottom + 22}`);
    svg.replaceChildren();
    for (const share of width < 560 ? [0, 0.5, 1] : [0, 0.25, 0.5, 0.75, 1]) {
      const x = across(share);
      svg.append(node("line", { x1: x, x2: x, y1: 4, y2: bottom, class: "grid" }));
      svg.append(node("text", { x, y: bottom + 16, "text-anchor": "middle" }, `${100 * share} %`));
    }
    rows.forEach(({ label, truth, mean, error }, index) => {
      const y = index * step + 26;
      svg.append(node("text", { x: left - 8, y: y + 4, "text-anchor": "end" }, label));
      svg.append(node("line", { x1: across(truth), x2: across(truth), y1: y - 13, y2: y + 13, class: "truth" }));
      svg.append(node("line", { x1: across(mean - 2 * error), x2: across(mean + 2 * error), y1: y, y2: y, class: "bar" }));
      svg.append(node("circle", { cx: across(mean), cy: y, r: 4 }));
      svg.append(node("text", { x: width - right + 10, y: y + 4 }, `${percent(mean)} ± ${percent(2 * error)}`));
    });
  };

  const slider = part("input[name=people]");
  const many = async () => {
    const people = Math.round(10 ** Number(slider.value));
    part("[data-many] output").textContent = people.toLocaleString("en");
    const { ways, minutes } = invented(people);
    const reports = await client.randomize(ways, minutes);
    const [first, second] = fields.map(([columns, bits]) => Math.ceil((people * columns * bits) / 8));
    const letters = unpacked(reports.subarray(0, first), people, fields[0][1]);
    const numbers = unpacked(reports.subarray(first, first + second), people, fields[1][1]);
    const rows = labels.map((label, code) => ({
      label,
      truth: ways.reduce((sum, way) => sum + (way === code), 0) / people,
      ...estimate(letters, data.estimates[0].map((row) => row[code])),
    }));
    draw(rows);
    const about = estimate(numbers, data.estimates[1].map(([value]) => value));
    const truth = minutes.reduce((sum, value) => sum + value, 0) / people;
    part("[data-mean]").textContent =
      `Mean time: ${about.mean.toFixed(1)} ± ${(2 * about.error).toFixed(1)} minutes, estimated from ${reports.length.toLocaleString("en")} bytes; among the people it is ${truth.toFixed(1)}.`;
    page.dataset.shown = JSON.stringify({ people, bytes: reports.length, rows, mean: { ...about, truth } });
  };
  slider.addEventListener("input", many);
  form.hidden = false;
  part("[data-many]").hidden = false;
  await many();
  page.dataset.ready = "yes";
})();
