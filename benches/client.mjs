// Times one record of each document in Node: client.mjs FOLDER DOCUMENT... writes nanoseconds by document.
import { readFileSync } from "node:fs";
import { basename } from "node:path";
import { pathToFileURL } from "node:url";

const [folder, ...documents] = process.argv.slice(2);
const { Client } = await import(pathToFileURL(`${folder}/bitldp.js`));
const arrays = { u8: Uint8Array, u16: Uint16Array, u32: Uint32Array, f32: Float32Array, f64: Float64Array };
const times = {};
for (const path of documents) {
  const text = readFileSync(path, "utf8").trim();
  // A ledger that allows everything: what is timed is the report.
  const client = await Client.open(text, { ledger: { charge() {} } });
  const { type, columns } = JSON.parse(text).record;
  let fastest = Infinity;
  for (let round = 0; round < 100; round++) {
    const begun = performance.now();
    for (let i = 0; i < 100; i++) await client.randomize(new arrays[type](columns));
    fastest = Math.min(fastest, ((performance.now() - begun) * 1e6) / 100);
  }
  times[basename(path, ".json")] = Math.round(fastest);
}
console.log(JSON.stringify(times));
