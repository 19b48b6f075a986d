// Replays cases in Node: each line of standard input is JSON {document, keys, input, report} in base64; counts what differs.
//   node same.mjs BITLDP.WASM < cases.jsonl
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";

const module = await WebAssembly.compile(readFileSync(process.argv[2]));
const bytes = (text) => Uint8Array.from(Buffer.from(text, "base64"));
let cases = 0, records = 0, wrong = 0;
for await (const line of createInterface({ input: process.stdin })) {
  const { name, document, epsilon, slack, calls } = JSON.parse(line);
  const wasm = new WebAssembly.Instance(module, { bitldp: { random: () => 1 } }).exports;
  const put = (data) => {
    const place = wasm.bitldp_alloc(Math.max(1, data.length));
    new Uint8Array(wasm.memory.buffer).set(data, place);
    return place;
  };
  const json = new TextEncoder().encode(document);
  const reason = put(new Uint8Array(4));
  const client = wasm.bitldp_open_with(put(json), json.length, Infinity, 1, reason);
  if (!client) {
    console.log(`${name}: refused, kind ${new DataView(wasm.memory.buffer).getInt32(reason, true)}`);
    wrong += 1;
    continue;
  }
  if (!(Math.abs(wasm.bitldp_epsilon(client) - epsilon) <= slack)) {
    console.log(`${name}: epsilon ${wasm.bitldp_epsilon(client)} for ${epsilon}`);
    wrong += 1;
  }
  cases += 1;
  for (const [keys, input, report] of calls.map((call) => call.map(bytes))) {
    const places = [put(keys), put(input), put(new Uint8Array(report.length))];
    const kind = wasm.bitldp_randomize_with_key(client, places[0], keys.length, places[1], input.length, places[2], report.length);
    const made = new Uint8Array(wasm.memory.buffer, places[2], report.length);
    if (kind || !report.every((byte, index) => byte === made[index])) {
      console.log(`${name}: record ${records} differs, kind ${kind}`);
      wrong += 1;
    }
    [keys, input, report].forEach((each, index) => wasm.bitldp_free(places[index], Math.max(1, each.length)));
    records += 1;
  }
  wasm.bitldp_close(client);
}
console.log(`${cases} documents, ${records} reports, ${wrong} wrong`);
process.exit(wrong ? 1 : 0);
