//! Documents that were changed at random are refused, or say what they said before: nothing else, and in bounded memory.

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bitldp_client::{Client, Kind};
use common::{documents, signed};

/// Counts the bytes that are held, and the most that ever were.
struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: the system's allocator does the work; only numbers are kept beside it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let held = HELD.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        MOST.fetch_max(held, Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Bytes that reading a small document may take, and the time.
const MOST_BYTES: usize = 64 << 20;
const LONGEST: Duration = Duration::from_secs(60);

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, count: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let state = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let state = (state ^ (state >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((u128::from(state ^ (state >> 31)) * count as u128) >> 64) as usize
    }

    fn of<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len())]
    }
}

/// Starts and ends of the tokens of a document: names, texts, numbers, and what is between them.
fn tokens(text: &str) -> Vec<(usize, usize)> {
    let (mut tokens, mut at, bytes) = (Vec::new(), 0, text.as_bytes());
    while at < bytes.len() {
        let start = at;
        at += 1;
        if bytes[start] == b'"' {
            while at < bytes.len() && bytes[at] != b'"' {
                at += 1 + usize::from(bytes[at] == b'\\');
            }
            at = (at + 1).min(bytes.len());
        } else if bytes[start].is_ascii_digit() || bytes[start] == b'-' {
            while at < bytes.len() && bytes[at].is_ascii_digit() {
                at += 1;
            }
        }
        tokens.push((start, at));
    }
    tokens
}

/// Values that are put in the place of others.
const VALUES: [&str; 22] = [
    "0",
    "1",
    "2",
    "-1",
    "15",
    "65535",
    "65536",
    "65537",
    "4194304",
    "4294967295",
    "4294967296",
    "9007199254740991",
    "\"0\"",
    "\"1\"",
    "\"18446744073709551616\"",
    "\"9223372036854775808\"",
    "\"\"",
    "\"7fefffffffffffff\"",
    "\"0000000000000001\"",
    "[]",
    "{}",
    "true",
];

/// A document with one change or a few.
fn mutated(text: &str, random: &mut Random) -> String {
    let mut text = text.trim_end().to_string();
    for _ in 0..1 + random.below(3) {
        let tokens = tokens(&text);
        // Names and values mostly, what is between them seldom.
        let any = random.below(5) == 0;
        let longer: Vec<_> = tokens.iter().filter(|(start, end)| any || end - start > 1).collect();
        let Some(&&(start, end)) = longer.get(random.below(longer.len().max(1))) else { continue };
        match random.below(8) {
            // A byte becomes another one.
            0 => {
                let mut bytes = text.clone().into_bytes();
                let at = random.below(bytes.len());
                bytes[at] ^= 1 << random.below(7);
                text = String::from_utf8(bytes).unwrap_or(text);
            }
            // A value becomes another one.
            1..=3 => text.replace_range(start..end, random.of(&VALUES)),
            // A digit becomes another one: the text stays canonical.
            4 => {
                let digits: Vec<usize> =
                    text.bytes().enumerate().filter(|(_, b)| b.is_ascii_digit()).map(|(at, _)| at).collect();
                let at = digits[random.below(digits.len())];
                let digit = (b'0' + random.below(10) as u8) as char;
                text.replace_range(at..=at, &digit.to_string());
            }
            // A token goes, or comes twice.
            5 => text.replace_range(start..end, ""),
            6 => {
                let token = text[start..end].to_string();
                text.insert_str(end, &token);
            }
            // Depth.
            _ => {
                let depth = 1 + random.below(40);
                text.replace_range(start..end, &format!("{}{}", "[".repeat(depth), "]".repeat(depth)));
            }
        }
        if text.is_empty() {
            return "{}".into();
        }
    }
    text
}

/// Reads so many changed documents; every other one has a checksum that is right, so that it is read to the end.
fn try_mutated(count: usize, seed: u64) {
    // What is held is counted for the whole process.
    static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let documents = documents();
    let open = |(name, text): &(String, String)| {
        Client::open(text).unwrap_or_else(|refused| panic!("{name}: {refused}"))
    };
    let originals: Vec<_> = documents.iter().map(open).collect();
    let mut random = Random(seed);
    let (mut refused, mut equal) = ([0usize; 32], 0);
    for round in 0..count {
        let which = random.below(documents.len());
        let mut text = mutated(&documents[which].1, &mut random);
        if round % 2 == 1 {
            text = signed(&text);
        }
        let (held, begun) = (HELD.load(Ordering::Relaxed), Instant::now());
        MOST.store(held, Ordering::Relaxed);
        match Client::open(&text) {
            Ok(client) => {
                // Only what is shown, or what allows less or more reports, may have changed.
                let original = &originals[which];
                assert_eq!(client.report_bytes(1), original.report_bytes(1), "{text}");
                assert!(
                    (client.epsilon() - original.epsilon()).abs() <= 1e-12 * original.epsilon().max(1.0),
                    "{text}"
                );
                equal += 1;
            }
            Err(reason) => refused[reason.kind as usize] += 1,
        }
        // The harness of the tests may give something back meanwhile.
        let most = MOST.load(Ordering::Relaxed).saturating_sub(held);
        assert!(most <= MOST_BYTES, "{most} bytes for {text}");
        assert!(begun.elapsed() <= LONGEST, "{:?} for {text}", begun.elapsed());
    }
    // Every line of defence was reached.
    let kinds = [Kind::Syntax, Kind::Field, Kind::Checksum, Kind::Law, Kind::Epsilon, Kind::Golden];
    for kind in kinds {
        assert!(count < 1000 || refused[kind as usize] > 0, "{kind:?}: {refused:?}");
    }
    println!("{count} documents: {equal} equal, refused by kind {refused:?}");
}

#[test]
fn changed_documents_are_refused_or_equal() {
    try_mutated(1000, 1);
}

#[test]
#[ignore = "ten thousand: make client-c"]
fn ten_thousand_changed_documents_are_refused_or_equal() {
    try_mutated(10_000, 2);
}
