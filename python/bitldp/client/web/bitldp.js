// Randomizes answers by a document (see bitldp.d.ts): copies bytes in and out of bitldp.wasm, and fetches nothing else.

const ARRAYS = { u8: Uint8Array, u16: Uint16Array, u32: Uint32Array, f32: Float32Array, f64: Float64Array };
const KINDS = ("done syntax size version field checksum law epsilon limit golden shape value output entropy budget ledger " +
  "memory keyed pointer unknown").split(" ");

export class Refused extends Error {
  constructor(kind, place) {
    super(place === undefined ? kind : `${kind} at ${place}`);
    this.name = "Refused";
    this.kind = kind;
    if (place !== undefined) this.place = place;
  }
}

let compiled;

// Fresh bytes of 32 keys, overwritten when used.
const pool = new Uint8Array(1024);
let left = 0;

async function compile(source) {
  if (source instanceof WebAssembly.Module) return source;
  let bytes = source;
  if (!(source instanceof ArrayBuffer || ArrayBuffer.isView(source))) {
    const url = source ?? new URL("bitldp.wasm", import.meta.url);
    const near = url.protocol === "file:" && typeof process !== "undefined";
    bytes = near ? await (await import("node:fs/promises")).readFile(url) : await (await fetch(url)).arrayBuffer();
  }
  return WebAssembly.compile(bytes);
}

/** A document's mechanism, checked. */
export class Client {
  #wasm;
  #client;
  #records;
  #ledger;
  #spends;

  static async open(document, { wasm, epsilon = Infinity, delta = 1, ledger } = {}) {
    const text = typeof document === "string" ? document.trim() : JSON.stringify(sorted(document));
    const module = wasm === undefined ? await (compiled ??= compile()) : await compile(wasm);
    return new Client(module, text, epsilon, delta, ledger);
  }

  constructor(module, text, epsilon, delta, ledger) {
    const random = (start, length) => {
      if (left < length) left = crypto.getRandomValues(pool).length;
      const key = pool.subarray(left - length, left);
      left -= length;
      new Uint8Array(this.#wasm.memory.buffer).set(key, start);
      key.fill(0);
      return 0;
    };
    this.#wasm = new WebAssembly.Instance(module, { bitldp: { random } }).exports;
    const json = new TextEncoder().encode(text);
    const reason = new Uint8Array(4), kinds = new Int32Array(reason.buffer);
    this.#client = this.#call([json], [reason], (a, out) => this.#wasm.bitldp_open_with(a, json.length, epsilon, delta, out));
    if (kinds[0]) throw this.#refused(kinds[0]);
    const read = JSON.parse(text); // the module checked it
    const records = (each) => each.record ?? each.parts.flatMap(records);
    this.#records = [records(read)].flat();
    this.#spends = read.spends;
    this.#ledger = ledger;
    if (this.#spends && !ledger) throw new Refused("budget");
  }

  get epsilon() { return this.#wasm.bitldp_epsilon(this.#client); }
  get delta() { return this.#wasm.bitldp_delta(this.#client); }
  get fingerprint() {
    const name = new Uint8Array(16);
    this.#call([], [name], (out) => this.#wasm.bitldp_fingerprint(this.#client, out));
    return Array.from(name, (byte) => byte.toString(16).padStart(2, "0")).join("");
  }
  get labels() { return this.#records.map(({ labels }) => labels); }

  async randomize(...records) {
    const x = this.#bytes(records);
    const run = (name) => this.#report(x, (a, out, size) => this.#wasm[name](this.#client, a, x.length, out, size));
    try {
      if (this.#spends) {
        run("bitldp_check"); // what is refused costs nothing
        const { ledger, most } = this.#spends;
        for (let left = this.#count(x); left > 0; left--) await this.#ledger.charge(ledger, most);
      }
      return run("bitldp_randomize");
    } finally {
      x.fill(0);
    }
  }

  randomizeKeyed(secret, id, ...records) {
    const x = this.#bytes(records);
    const name = typeof id === "bigint" ? new Uint8Array(new BigUint64Array([id]).buffer)
      : typeof id === "string" ? new TextEncoder().encode(id) : id;
    if (secret.length !== 32) throw new Refused("pointer");
    const run = (a, s, i, out, size) =>
      this.#wasm.bitldp_randomize_keyed(this.#client, s, i, name.length, a, x.length, out, size);
    try {
      return this.#report(x, run, secret, name);
    } finally {
      x.fill(0);
    }
  }

  close() {
    this.#wasm.bitldp_close(this.#client);
    this.#client = 0;
  }

  #bytes(records) {
    if (records.length !== this.#records.length) throw new Refused("shape");
    const parts = records.map((given, index) => {
      const { type, labels } = this.#records[index];
      const plain = ArrayBuffer.isView(given) ? given : Array.isArray(given) ? given : [given];
      if (labels && !ArrayBuffer.isView(plain)) {
        const codes = plain.map((label, at) => (labels[0].map ? labels[at % labels.length] : labels).indexOf(label));
        if (codes.includes(-1)) throw new Refused("value", codes.indexOf(-1));
        return ARRAYS[type].from(codes);
      }
      if (plain instanceof ARRAYS[type]) return plain;
      // A typed array would wrap codes, and read texts.
      const bad = Array.from(plain).findIndex((value) => typeof value !== "number" ||
        (type[0] === "u" && !(Number.isInteger(value) && value >= 0 && value < 2 ** type.slice(1))));
      if (bad >= 0) throw new Refused("value", bad);
      return ARRAYS[type].from(plain);
    });
    const all = new Uint8Array(parts.reduce((sum, part) => sum + part.byteLength, 0));
    parts.reduce((at, part) => {
      all.set(new Uint8Array(part.buffer, part.byteOffset, part.byteLength), at);
      return at + part.byteLength;
    }, 0);
    return all;
  }

  #count(x) { return x.length / this.#wasm.bitldp_record_bytes(this.#client); }

  #report(x, run, ...more) {
    if (!this.#client) throw new Refused("pointer");
    const records = this.#count(x);
    const size = records % 1 ? 0 : this.#wasm.bitldp_report_bytes(this.#client, records);
    if (size < 1) throw new Refused("shape");
    const out = new Uint8Array(size);
    const kind = this.#call([x, ...more], [out], (...places) => run(...places, size));
    if (kind) throw this.#refused(kind);
    return out;
  }

  #refused(kind) {
    const place = this.#wasm.bitldp_place();
    return new Refused(KINDS[kind] ?? "unknown", place < 0 ? undefined : place);
  }

  // The module overwrites its memory.
  #call(ins, outs, run) {
    const wasm = this.#wasm;
    const all = [...ins, ...outs];
    const places = all.map((each) => wasm.bitldp_alloc(each.length || 1));
    const at = (index) => new Uint8Array(wasm.memory.buffer, places[index], all[index].length);
    try {
      if (places.includes(0)) throw new Refused("memory");
      ins.forEach((each, index) => at(index).set(each));
      const result = run(...places);
      outs.forEach((each, index) => each.set(at(ins.length + index)));
      return result;
    } finally {
      all.forEach((each, index) => wasm.bitldp_free(places[index], each.length || 1));
    }
  }
}

function sorted(value) {
  if (Array.isArray(value)) return value.map(sorted);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.keys(value).sort().map((name) => [name, sorted(value[name])]));
}

/** A ledger in IndexedDB: counts uses by name, over reloads and tabs. */
export class StoredLedger {
  constructor(name = "bitldp") { this.name = name; }

  async charge(ledger, most) {
    const database = await new Promise((done, failed) => {
      const opening = indexedDB.open(this.name, 1);
      opening.onupgradeneeded = () => opening.result.createObjectStore("used");
      opening.onsuccess = () => done(opening.result);
      opening.onerror = opening.onblocked = () => failed(new Refused("ledger"));
    });
    try {
      await new Promise((done, failed) => {
        const transaction = database.transaction("used", "readwrite", { durability: "strict" });
        const store = transaction.objectStore("used");
        let spent = false;
        const reading = store.get(ledger);
        reading.onsuccess = () => {
          const used = reading.result ?? 0;
          if (used < most) store.put(used + 1, ledger);
          else spent = true;
        };
        transaction.oncomplete = () => (spent ? failed(new Refused("budget")) : done());
        transaction.onerror = transaction.onabort = () => failed(new Refused("ledger"));
      });
    } finally {
      database.close();
    }
  }
}
