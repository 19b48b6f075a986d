//! Local differential privacy on the client: a mechanism is data, a *document*, which a server publishes and a client inspects.
//!
//! A [`Client`] is opened from a document. Nothing in a document is code: it holds the integers of a channel, how values become
//! codes, and the layout of the report. The client computes epsilon from those integers and refuses a document that states
//! another one, that goes beyond the host's [`Limits`], that has a field or version it does not know, or whose own test it
//! cannot repeat. Then it turns values into reports:
//!
//! ```no_run
//! use bitldp_client::{Client, Limits, Values};
//!
//! let document = std::fs::read_to_string("mechanism.json").unwrap();
//! let client = Client::open_with(&document, Limits { epsilon: 2.0, delta: 0.0 })?;
//! println!("{}", client.sentence());
//! let mut report = vec![0; client.report_bytes(1)];
//! client.randomize(Values::U8(&[3]), &mut report)?;
//! # Ok::<(), bitldp_client::Refused>(())
//! ```
//!
//! Reports are the bytes that `bitldp` for Python makes under the same key: the channels are those of `bitldp-core`.
//!
//! - **Keys** are fresh ones of the operating system, 32 bytes for each stream, and there is no other way to give one but
//!   [`Client::randomize_keyed`], whose reports stay the same, and the feature `golden`, which is for tests.
//! - **Refusals** ([`Refused`]) name a reason and a position, never a value; the report is zeros then.
//! - **Budgets**: where a document says how many reports it allows, a [`Ledger`] charges each before it is drawn.
//! - Keys and copies of values are overwritten after use. No thread is started. After a client is opened, windows, matrices,
//!   noise, bits and unary encodings allocate nothing for a record of up to 512 values.
//! - The same functions are there for C (`include/bitldp.h`) and for WebAssembly (the exports of `wasm32-unknown-unknown`).
#![deny(unsafe_code)]

/// The README's example, which is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(not(target_family = "wasm"))]
mod c;
mod cells;
mod client;
mod codec;
mod draws;
mod exports;
mod fields;
mod fitting;
mod item;
mod json;
mod keys;
mod law;
#[cfg(not(target_family = "wasm"))]
mod ledger;
mod message;
mod part;
mod plain;
mod pointers;
mod prepared;
mod program;
mod refused;
mod release;
mod sampled;
mod special;
mod update;
mod values;
#[cfg(target_family = "wasm")]
mod wasm;

pub use client::{Budget, Client, Id, Ledger, Limits, Secret};
#[cfg(not(target_family = "wasm"))]
pub use ledger::FileLedger;
pub use refused::{Kind, Refused, Result};
pub use values::{ValueType, Values};
