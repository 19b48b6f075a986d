// Times each document in Node: client.mjs FOLDER VALUES DOCUMENT... writes the nanoseconds of opening, of one record, and of one
// record of a call with VALUES values, by document.
import { readFileSync } from "node:fs";
import { basename } from "node:path";
import { pathToFileURL } from "node:url";

const [folder, values, ...documents] = process.argv.slice(2);
const { Client } = await import(pathToFileURL(`${folder}/bitldp.js`));
const arrays = { u8: Uint8Array, u16: Uint16Array, u32: Uint32Array, f32: Float32Array, f64: Float64Array };
// A ledger that allows everything: what is timed is the report.
const ledger = { charge() {} };

// The fastest of many rounds: what else the machine does is no part of it.
async function fastest(rounds, calls, work) {
  let least = Infinity;
  for (let round = 0; round < rounds; round++) {
    const begun = performance.now();
    for (let call = 0; call < calls; call++) await work();
    least = Math.min(least, ((performance.now() - begun) * 1e6) / calls);
  }
  return least;
}

const times = {};
for (const path of documents) {
  const text = readFileSync(path, "utf8").trim();
  const open = await fastest(50, 1, async () => (await Client.open(text, { ledger })).close());
  const client = await Client.open(text, { ledger });
  const { record: { type, columns }, header, update } = JSON.parse(text);
  const size = columns * (update?.records ?? 1);
  // A message is about one record.
  const batch = header || update ? 1 : Math.ceil(values / size);
  const one = new arrays[type](size), many = new arrays[type](size * batch);
  const record = await fastest(100, 100, () => client.randomize(one));
  const together = (await fastest(100, 1, () => client.randomize(many))) / batch;
  times[basename(path, ".json")] = { open_ns: open, record_ns: record, together_ns: together };
}
console.log(JSON.stringify(times));
