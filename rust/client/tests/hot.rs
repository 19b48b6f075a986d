//! The way of one record: nothing is allocated after a client is open, and what is refused leaves zeros.

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use bitldp_client::{Client, Kind, Limits, Values};
use common::documents;

/// Counts what this thread allocates.
struct Counting;

thread_local! {
    static COUNT: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: the system's allocator does the work; only a number is kept beside it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.with(|count| count.set(count.get() + 1));
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// A ledger that allows everything.
fn free(_: &Client) -> bitldp_client::Result<()> {
    Ok(())
}

#[test]
fn a_record_allocates_nothing() {
    for (name, text) in documents() {
        let client = Client::open(&text).unwrap();
        let (record, mut out) = (vec![0; client.record_bytes()], vec![0; client.report_bytes(1)]);
        let mut counted = [0; 3];
        for count in &mut counted {
            let before = COUNT.with(Cell::get);
            client.randomize_charged(&mut free, Values::Bytes(&record), &mut out).unwrap();
            *count = COUNT.with(Cell::get) - before;
        }
        // The core's channel of subsets works in buffers of its own, as those of other folders may.
        let counts = ["frr", "grr", "message", "oue", "piecewise"].contains(&name.as_str());
        assert!(counted[1..] == [0, 0] || !counts, "{name}: {counted:?}");
    }
}

#[test]
fn reports_are_drawn_anew_and_refusals_leave_zeros() {
    for (name, text) in documents() {
        let client = Client::open(&text).unwrap();
        // A message is about one record.
        let at_once = if client.report_bytes(40) == usize::MAX { 1 } else { 40 };
        let record = vec![0; at_once * client.record_bytes()];
        let mut reports = [vec![], vec![]];
        for all in &mut reports {
            for _ in 0..40 / at_once {
                let mut out = vec![0; client.report_bytes(at_once)];
                client.randomize_charged(&mut free, Values::Bytes(&record), &mut out).unwrap();
                all.extend(out);
            }
        }
        assert!(reports[0] != reports[1], "{name}");
        let mut out = vec![255; client.report_bytes(1)];
        // NaN says in some documents that there is no value: those refuse what is infinite.
        let gaps = text.contains("\"gaps\":true");
        let wrong = if gaps { f64::INFINITY.to_le_bytes() } else { [255; 8] };
        let wrong: Vec<u8> = wrong.into_iter().cycle().take(client.record_bytes()).collect();
        // And where numbers outside move to the ends, nothing is refused.
        if !gaps || text.contains("\"outside\":\"refuse\"") {
            let refused = client.randomize_charged(&mut free, Values::Bytes(&wrong), &mut out).unwrap_err();
            assert_eq!((refused.kind, refused.place), (Kind::Value, Some(0)), "{name}");
            assert!(out.iter().all(|&byte| byte == 0), "{name}");
        }
        out.fill(255);
        let mut full = |_: &Client| Err(Kind::Budget.into());
        let refused =
            client.randomize_charged(&mut full, Values::Bytes(&record[..client.record_bytes()]), &mut out);
        assert_eq!(refused.unwrap_err().kind, Kind::Budget, "{name}");
        assert!(out.iter().all(|&byte| byte == 0), "{name}");
        let mut short = vec![255; client.report_bytes(1) + 1];
        let refused =
            client.randomize_charged(&mut free, Values::Bytes(&record[..client.record_bytes()]), &mut short);
        assert_eq!(refused.unwrap_err().kind, Kind::Output, "{name}");
        let refused = client.randomize_charged(&mut free, Values::Bytes(&[]), &mut out).unwrap_err();
        assert_eq!(refused.kind, Kind::Shape, "{name}");
        let limits = Limits { epsilon: client.epsilon().next_down(), delta: 0.0 };
        assert_eq!(Client::open_with(&text, limits).unwrap_err().kind, Kind::Limit, "{name}");
        assert_eq!(
            Client::open_with(&text, Limits { epsilon: f64::NAN, delta: 0.0 }).unwrap_err().kind,
            Kind::Limit
        );
    }
}

#[test]
fn a_budget_needs_a_ledger() {
    let (_, text) = documents().into_iter().find(|(name, _)| name == "grr").unwrap();
    let client = Client::open(&text).unwrap();
    let mut out = [255];
    assert_eq!(client.randomize(Values::Labels(&["Oslo"]), &mut out).unwrap_err().kind, Kind::Budget);
    assert_eq!(out, [0]);
    assert!(client.randomize_charged(&mut free, Values::Labels(&["Oslo"]), &mut out).is_ok());
}
