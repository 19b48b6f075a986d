export type Input = Uint8Array | Uint16Array | Uint32Array | Float32Array | Float64Array | readonly number[] | readonly string[];
export type Kind =
  | "syntax" | "size" | "version" | "field" | "checksum" | "law" | "epsilon" | "limit" | "golden" | "shape" | "value" | "output"
  | "entropy" | "budget" | "ledger" | "memory" | "keyed" | "pointer" | "unknown";

/** A refusal. It names a kind and a position, and never a value. */
export class Refused extends Error {
  readonly kind: Kind;
  readonly place?: number;
}

/** Storage of what is spent: asked once for each record. It must resolve only when the charge is kept, and reject past `most`. */
export interface Ledger {
  charge(ledger: string, most: number): Promise<void>;
}

/** A ledger in the browser's IndexedDB, which lasts over reloads and is shared by tabs. */
export class StoredLedger implements Ledger {
  constructor(name?: string);
  charge(ledger: string, most: number): Promise<void>;
}

export interface Options {
  /** The module bitldp.wasm, its bytes or its address; by default the file beside this one. */
  wasm?: BufferSource | WebAssembly.Module | URL;
  /** Largest epsilon and delta of one report that is accepted. */
  epsilon?: number;
  delta?: number;
  /** Needed where the document states a budget. */
  ledger?: Ledger;
}

/** A mechanism from a document, checked: its epsilon follows from its integers. */
export class Client {
  static open(document: string | object, options?: Options): Promise<Client>;
  /** Exact epsilon of one report, between any two records. */
  readonly epsilon: number;
  readonly delta: number;
  /** The server's name of the mechanism, 32 hexadecimal digits. */
  readonly fingerprint: string;
  /** The public labels of each record's values, or a list for each of them; undefined for numbers and bare codes. */
  readonly labels: readonly (readonly string[] | readonly (readonly string[])[] | undefined)[];
  /**
   * Randomize with fresh keys of `crypto.getRandomValues`, after the ledger is charged for each record. Values that are refused
   * are not charged. Of a model's update, give the vector as a Float64Array: it resolves to the message. Where the document has
   * a header, a call is about one record. A missing value is NaN or the label "", where the document takes one; a set is an
   * array of a 0 or a 1 for each item; a date or time is the number of units that the document states, since 1970-01-01 or
   * midnight.
   */
  randomize(...records: (Input | number | string)[]): Promise<Uint8Array>;
  /** Randomize one record as a function of a secret of 32 bytes and the record's id. */
  randomizeKeyed(secret: Uint8Array, id: bigint | string | Uint8Array, ...records: (Input | number | string)[]): Uint8Array;
  close(): void;
}
