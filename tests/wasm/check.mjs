// Runs a module in Node: its streams against tests/vectors/streams.txt, and with --time what a value takes.
import { readFileSync } from "node:fs";

const [path, ...options] = process.argv.slice(2);
const { instance } = await WebAssembly.instantiate(readFileSync(path), {});
const { memory, text, ...module } = instance.exports;
const read = (length) => new TextDecoder().decode(new Uint8Array(memory.buffer, text(), length));

const isa = read(module.isa());
const wanted = options.find((option) => !option.startsWith("--"));
if (wanted !== undefined && isa !== wanted) throw new Error(`${path}: built for ${isa}, not for ${wanted}`);
const old = readFileSync(new URL("../vectors/streams.txt", import.meta.url), "utf8").trim().split("\n");
for (const scalar of [0, 1]) {
  const streams = read(module.streams(scalar)).trim().split("\n");
  const others = old.filter((line, at) => line !== streams[at]);
  if (streams.length !== old.length || others.length) throw new Error(`${isa}, scalar ${scalar}: not ${others.join("; ")}`);
}
if (!module.refuses_what_a_host_lacks()) throw new Error(`${isa}: threads or keys of the system`);
console.log(`${isa}: ${old.length} streams are those of native builds`);

if (options.includes("--time")) {
  const channels = ["f-RR 10 bits", "GRR 16", "Piecewise 254"];
  for (const [channel, name] of channels.entries()) {
    for (const packed of [0, 1]) {
      const times = [];
      for (let seed = 0; seed < 60; seed++) {
        const start = performance.now();
        const values = module.timed(channel, packed, seed);
        times.push(((performance.now() - start) * 1e6) / values);
      }
      times.sort((a, b) => a - b);
      console.log(`${isa} ${name} ${packed ? "packed" : "codes"}: ${times[0].toFixed(2)} ns a value, median ${times[30].toFixed(2)}`);
    }
  }
}
