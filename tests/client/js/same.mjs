// Replays cases in Node or in a page. A case is JSON {name, document, epsilon, slack, calls}; a call is keys, input and report
// in base64.
//   node same.mjs BITLDP.WASM < cases.jsonl
const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));

/** Replay one case: returns the number of its reports, and a line for each that differs from what is expected. */
export function replay(module, text) {
  const { name, document, epsilon, slack, calls } = JSON.parse(text);
  const wasm = new WebAssembly.Instance(module, { bitldp: { random: () => 1 } }).exports;
  const put = (data) => {
    const place = wasm.bitldp_alloc(Math.max(1, data.length));
    new Uint8Array(wasm.memory.buffer).set(data, place);
    return place;
  };
  const json = new TextEncoder().encode(document);
  const reason = put(new Uint8Array(4));
  const client = wasm.bitldp_open_with(put(json), json.length, Infinity, 1, reason);
  if (!client) return { reports: 0, wrong: [`${name}: refused, kind ${new DataView(wasm.memory.buffer).getInt32(reason, true)}`] };
  const wrong = [];
  if (!(Math.abs(wasm.bitldp_epsilon(client) - epsilon) <= slack)) {
    wrong.push(`${name}: epsilon ${wasm.bitldp_epsilon(client)} for ${epsilon}`);
  }
  calls.forEach((call, index) => {
    const [keys, input, report] = call.map(bytes);
    const places = [put(keys), put(input), put(new Uint8Array(report.length))];
    const kind = wasm.bitldp_randomize_with_key(client, places[0], keys.length, places[1], input.length, places[2], report.length);
    const made = new Uint8Array(wasm.memory.buffer, places[2], report.length);
    if (kind || !report.every((byte, index) => byte === made[index])) wrong.push(`${name}: record ${index} differs, kind ${kind}`);
    [keys, input, report].forEach((each, index) => wasm.bitldp_free(places[index], Math.max(1, each.length)));
  });
  wasm.bitldp_close(client);
  return { reports: calls.length, wrong };
}

if (typeof process !== "undefined") {
  const { readFileSync } = await import("node:fs");
  const { createInterface } = await import("node:readline");
  const module = await WebAssembly.compile(readFileSync(process.argv[2]));
  let cases = 0, reports = 0, wrong = 0;
  for await (const line of createInterface({ input: process.stdin })) {
    const result = replay(module, line);
    result.wrong.forEach((each) => console.log(each));
    cases += 1;
    reports += result.reports;
    wrong += result.wrong.length;
  }
  console.log(`${cases} documents, ${reports} reports, ${wrong} wrong`);
  process.exit(wrong ? 1 : 0);
}
