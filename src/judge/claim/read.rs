//! What a nameplate statement says: numbers with their units and the words around them, as people write them.

use crate::unit::{Quantity, Unit};

/// Vector or matrix units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// Ordinary arithmetic units ("CUDA cores", "vector").
    Vector,
    /// Tensor cores, matrix cores.
    Matrix,
}

/// Ways a link counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// One way.
    One,
    /// Both ways added up.
    Both,
}

/// What one of several things in a package, on a board or in an instance a number is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Per {
    /// A device as the driver shows it.
    Device,
    /// Everything together.
    Total,
}

/// What a number is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum About {
    /// Arithmetic.
    Rate,
    /// Bytes per second, of memory unless the words say otherwise.
    Bandwidth,
    /// A link between GPUs.
    PeerLink,
    /// The link to the host.
    HostLink,
    /// Bytes of GPU memory.
    Memory,
    /// Bytes of cache.
    Cache,
    /// Clock.
    Clock,
    /// Power.
    Power,
    /// Compute units.
    Units,
    /// Something that no vendor figure of a GPU speaks of (host memory, disks, network).
    Elsewhere,
}

/// One number with what is said about it.
#[derive(Debug, Clone, PartialEq)]
pub struct Statement {
    /// In base units.
    pub value: Quantity,
    /// By how much a figure may differ, relative: half of the last digit written.
    pub tolerance: f64,
    /// What it is about.
    pub about: About,
    /// Arithmetic types named with it, as figures call them.
    pub types: Vec<&'static str>,
    /// Units named.
    pub engine: Option<Engine>,
    /// Accumulation named: bits of the accumulator.
    pub accumulate: Option<u32>,
    /// Named dense (false) or sparse (true).
    pub sparse: Option<bool>,
    /// Direction named.
    pub direction: Option<Direction>,
    /// What it counts.
    pub per: Option<Per>,
    /// Named as holding between all GPUs.
    pub all_pairs: bool,
    /// Written in MiB: to the byte, not the size in a name.
    pub exact_size: bool,
}

/// Smallest and largest tolerance: vendors round to three digits, and no rounding of one digit hides 3 %.
const TOLERANCE: std::ops::RangeInclusive<f64> = 0.005..=0.025;

const TYPES: &[(&str, &[&str])] = &[
    ("fp64", &["fp64", "float64", "f64", "double precision", "double", "双精度"]),
    ("tf32", &["tf32", "tensorfloat", "tensor float 32"]),
    ("fp32", &["fp32", "float32", "f32", "single precision", "单精度"]),
    ("bf16", &["bf16", "bfloat16"]),
    ("fp16", &["fp16", "float16", "f16", "half precision", "半精度"]),
    ("fp8", &["fp8", "float8", "e4m3", "e5m2"]),
    ("fp6", &["fp6"]),
    ("fp4", &["nvfp4", "mxfp4", "fp4"]),
    ("int8", &["int8", "i8 ", "整型8位"]),
    ("int4", &["int4"]),
];

const MATRIX: &[&str] = &["tensor", "matrix", "张量", "矩阵"];
const VECTOR: &[&str] = &["vector", "cuda core", "shader", "non-tensor", "non tensor", "向量", "矢量"];
const SPARSE: &[&str] = &["with sparsity", "sparsity", "sparse", "2:4", "稀疏"];
const DENSE: &[&str] = &["dense", "without sparsity", "no sparsity", "non-sparse", "not sparse", "稠密", "非稀疏"];
const ONE_WAY: &[&str] =
    &["per direction", "each way", "one way", "one-way", "each direction", "unidirectional", "单向"];
const BOTH_WAYS: &[&str] = &["bidirectional", "both directions", "bi-directional", "both ways", "双向"];
const PEER: &[&str] = &[
    "nvlink",
    "nvswitch",
    "xgmi",
    "infinity fabric",
    "xe link",
    "interconnect",
    "peer",
    "p2p",
    "between",
    "gpu-to-gpu",
    "卡间",
    "互联",
    "互连",
];
const HOST: &[&str] = &["pcie", "pci-e", "pci express", "host to device", "h2d", "d2h"];
const ELSEWHERE: &[&str] = &[
    "network",
    "ethernet",
    "infiniband",
    "rdma",
    "nic",
    "网络",
    "nvme",
    "ssd",
    "disk",
    "storage",
    "硬盘",
    "磁盘",
    "system memory",
    "host memory",
    "系统内存",
    "vcpu",
    "ddr4",
    "ddr5",
];
const DEVICE: &[&str] = &["per gpu device", "per device", "per gcd", "per die", "each gcd", "每个gcd"];
const TOTAL: &[&str] =
    &["in total", "total", "aggregate", "all gpus together", "whole node", "per node", "整机", "总计"];
const ALL_PAIRS: &[&str] = &["between all", "any two", "every pair", "all-to-all", "all gpus", "任意两", "全互联"];
const ACCUMULATE: &[(u32, &[&str])] = &[
    (16, &["fp16 accumulate", "fp16 accumulation", "fp16 acc", "fp16累加", "16-bit accumulate"]),
    (32, &["fp32 accumulate", "fp32 accumulation", "fp32 acc", "fp32累加", "32-bit accumulate", "training", "训练"]),
];
/// Words whose following number belongs to a product's name.
const NAMED_NUMBERS: &[&str] =
    &["rtx", "gtx", "rx", "quadro", "tesla", "radeon", "instinct", "arc", "flex", "max", "pro", "geforce", "titan"];

/// Words whose following digit is a generation.
const GENERATIONS: &[&str] = &["gen", "nvlink", "hbm", "sparsity"];

/// Every statement in `text`, in order. Empty where no number with a known unit is in it.
pub fn read(text: &str) -> Vec<Statement> {
    let plain = normalized(text);
    let mut statements = Vec::new();
    let mut types: Vec<&'static str> = Vec::new();
    for part in parts(&plain) {
        let words = Words::of(&part);
        // "FP16, 312 TFLOPS": a part that only names types speaks for the next one.
        let own = if words.types.is_empty() { types.clone() } else { words.types.clone() };
        let numbers = numbers(&part, !own.is_empty());
        types = if numbers.is_empty() { words.types.clone() } else { Vec::new() };
        statements.extend(numbers.into_iter().map(|n| words.statement(n, &own)));
    }
    statements
}

/// A thing that a text says is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feature {
    /// A link of its own between GPUs.
    PeerLink,
    /// A memory type, as spec files write it.
    MemoryType(&'static str),
}

/// The longest names first: one is the beginning of another.
const MEMORY_TYPES: [&str; 9] = ["HBM3e", "HBM2e", "GDDR6X", "HBM4", "HBM3", "HBM2", "GDDR7", "GDDR6", "GDDR5"];

/// Features that `text` names.
pub fn features(text: &str) -> Vec<Feature> {
    let lower = normalized(text).to_lowercase();
    let mut features = Vec::new();
    if ["nvlink", "nvswitch", "xgmi", "infinity fabric"].iter().any(|w| contains(&lower, w)) {
        features.push(Feature::PeerLink);
    }
    let named = |t: &&str| find(&lower, &t.to_lowercase()).is_some();
    features.extend(MEMORY_TYPES.iter().find(|t| named(t)).map(|t| Feature::MemoryType(t)));
    features
}

/// Half-width and with plain spaces; case is kept, since it tells bits from bytes.
pub(super) fn normalized(text: &str) -> String {
    let narrow = |c: char| match c {
        '，' | '、' | '；' | '。' => ';',
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(c) - 0xfee0).unwrap_or(c),
        '\u{3000}' | '\u{a0}' | '\u{202f}' => ' ',
        '×' => 'x',
        c => c,
    };
    text.chars().map(narrow).collect()
}

/// Cut where one statement ends; a comma within a number does not end it.
pub(super) fn parts(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    let mut parts = vec![String::new()];
    for (i, &c) in chars.iter().enumerate() {
        let digit = |j: Option<usize>| j.and_then(|j| chars.get(j)).is_some_and(char::is_ascii_digit);
        let in_number = c == ',' && digit(i.checked_sub(1)) && (1..=3).all(|d| digit(Some(i + d)));
        match c {
            ';' | '\n' | '|' => parts.push(String::new()),
            ',' if !in_number => parts.push(String::new()),
            c => {
                if let Some(last) = parts.last_mut() {
                    last.push(c);
                }
            }
        }
    }
    parts.iter().flat_map(|p| p.split(" and ").map(str::to_owned).collect::<Vec<_>>()).collect()
}

/// The words of one part.
struct Words {
    types: Vec<&'static str>,
    engine: Option<Engine>,
    accumulate: Option<u32>,
    sparse: Option<bool>,
    direction: Option<Direction>,
    per: Option<Per>,
    place: Option<About>,
    all_pairs: bool,
    has_cache: bool,
}

impl Words {
    fn of(part: &str) -> Words {
        let mut text = part.to_lowercase();
        // An accumulator's type is not the type of the operands.
        let accumulate = ACCUMULATE.iter().find(|(_, words)| take(&mut text, words)).map(|(bits, _)| *bits);
        let is_dense = take(&mut text, DENSE);
        let is_sparse = take(&mut text, SPARSE);
        let is_vector = take(&mut text, VECTOR);
        let types = TYPES.iter().filter(|(_, words)| take(&mut text, words)).map(|(name, _)| *name).collect();
        let has = |words: &[&str]| words.iter().any(|w| contains(&text, w));
        Words {
            types,
            engine: match (is_vector, has(MATRIX)) {
                (true, _) => Some(Engine::Vector),
                (false, true) => Some(Engine::Matrix),
                (false, false) => None,
            },
            accumulate,
            sparse: if is_dense { Some(false) } else { is_sparse.then_some(true) },
            direction: match (has(ONE_WAY), has(BOTH_WAYS)) {
                (true, _) => Some(Direction::One),
                (false, true) => Some(Direction::Both),
                (false, false) => None,
            },
            per: match (has(DEVICE), has(TOTAL)) {
                (true, _) => Some(Per::Device),
                (false, true) => Some(Per::Total),
                (false, false) => None,
            },
            place: [(ELSEWHERE, About::Elsewhere), (PEER, About::PeerLink), (HOST, About::HostLink)]
                .into_iter()
                .find(|(words, _)| has(words))
                .map(|(_, about)| about),
            all_pairs: has(ALL_PAIRS),
            has_cache: has(&["l2", "cache", "缓存"]),
        }
    }

    fn statement(&self, number: Number, types: &[&'static str]) -> Statement {
        let about = match (number.unit, self.place) {
            (Unit::FlopPerSecond | Unit::OpPerSecond, _) => About::Rate,
            (Unit::Hertz, _) => About::Clock,
            (Unit::Watt, _) => About::Power,
            (Unit::Count, _) => About::Units,
            (_, Some(About::Elsewhere)) => About::Elsewhere,
            (Unit::BytePerSecond, Some(place)) => place,
            (Unit::BytePerSecond, None) => About::Bandwidth,
            _ if self.has_cache => About::Cache,
            _ => About::Memory,
        };
        Statement {
            value: Quantity { value: number.value, unit: number.unit },
            tolerance: number.tolerance,
            about,
            types: types.to_vec(),
            engine: self.engine,
            accumulate: self.accumulate,
            sparse: self.sparse,
            direction: self.direction,
            per: self.per,
            all_pairs: self.all_pairs,
            exact_size: number.exact_size,
        }
    }
}

/// Blanks the first of `words` that is in `text`, everywhere; true if one was.
fn take(text: &mut String, words: &[&str]) -> bool {
    let mut found = false;
    for word in words.iter().filter(|w| !w.is_empty()) {
        while let Some(at) = find(text, word) {
            text.replace_range(at..at + word.len(), &" ".repeat(word.len()));
            found = true;
        }
    }
    found
}

fn contains(text: &str, word: &str) -> bool {
    find(text, word).is_some()
}

/// Where `word` stands as a word of its own; words of Chinese need no border.
fn find(text: &str, word: &str) -> Option<usize> {
    let is_latin = |c: char| c.is_ascii_alphanumeric();
    text.match_indices(word).map(|(at, _)| at).find(|&at| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        let starts = !word.chars().next().is_some_and(is_latin) || !before.is_some_and(is_latin);
        // "nvlink4", "hbm3", "tensors": digits and plural may follow, other letters may not.
        let ends = !word.chars().next_back().is_some_and(is_latin)
            || after.is_none_or(|c| {
                !is_latin(c) || c == 's' || (c.is_ascii_digit() && !word.ends_with(|w: char| w.is_ascii_digit()))
            });
        starts && ends
    })
}

/// A number with its unit.
struct Number {
    value: f64,
    unit: Unit,
    tolerance: f64,
    exact_size: bool,
}

fn numbers(part: &str, has_type: bool) -> Vec<Number> {
    let mut numbers = Vec::new();
    // "1000/2000 TFLOPS": the unit comes with the last.
    let mut waiting: Vec<(f64, f64)> = Vec::new();
    let mut bare: Vec<(f64, f64)> = Vec::new();
    let mut at = 0;
    while let Some((start, end)) = next_number(part, at) {
        at = end;
        let Some((value, tolerance)) = value(&part[start..end]) else { continue };
        let rest = &part[end..];
        if rest.starts_with('/') && rest[1..].starts_with(|c: char| c.is_ascii_digit()) {
            waiting.push((value, tolerance));
            continue;
        }
        let Some((scale, unit, exact_size, length)) = unit(rest, has_type) else {
            bare.extend(waiting.drain(..).chain([(value, tolerance)]));
            continue;
        };
        at = end + length;
        let all = waiting.drain(..).chain([(value, tolerance)]);
        numbers.extend(all.map(|(v, tolerance)| Number { value: v * scale, unit, tolerance, exact_size }));
    }
    // "FP16 312": a number beside a type and without a unit is in units of 10^12.
    if numbers.is_empty() && has_type {
        let number = |(value, tolerance)| Number {
            value: value * 1e12,
            unit: Unit::FlopPerSecond,
            tolerance,
            exact_size: false,
        };
        numbers.extend(bare.into_iter().map(number));
    }
    numbers
}

/// The next number from `from` on that is not part of a word or a product's name.
fn next_number(part: &str, from: usize) -> Option<(usize, usize)> {
    let bytes = part.as_bytes();
    let mut at = from;
    loop {
        at += bytes.get(at..)?.iter().position(u8::is_ascii_digit)?;
        let mut end = at;
        while end < bytes.len()
            && (bytes[end].is_ascii_digit()
                || (matches!(bytes[end], b'.' | b',') && bytes.get(end + 1).is_some_and(u8::is_ascii_digit)))
        {
            end += 1;
        }
        let before = part[..at].trim_end().to_lowercase();
        // A negative number is no statement; a dash between a word and a number is no minus.
        let minus = part[..at].strip_suffix(['-', '\u{2212}']);
        let is_negative = minus.is_some_and(|before| !before.ends_with(|c: char| c.is_alphanumeric()));
        let is_glued = part[..at].ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
            || (part[..at].ends_with('-') && part[..at - 1].ends_with(|c: char| c.is_ascii_alphabetic()));
        let follows = |words: &[&str]| words.iter().any(|w| before.ends_with(w) && find(&before, w).is_some());
        let is_name = follows(NAMED_NUMBERS) || (end - at == 1 && follows(GENERATIONS));
        let is_ratio = part[end..].starts_with(':')
            || before.ends_with(':')
                && part[..at].ends_with(':')
                && before.trim_end_matches(':').ends_with(|c: char| c.is_ascii_digit());
        if !(is_glued || is_name || is_ratio || is_negative) {
            return Some((at, end));
        }
        at = end;
    }
}

/// Value of a written number and half of its last digit, relative.
fn value(written: &str) -> Option<(f64, f64)> {
    let plain = written.replace(',', "");
    let value: f64 = plain.parse().ok().filter(|v: &f64| v.is_finite() && *v > 0.0)?;
    let last = match plain.split_once('.') {
        Some((_, decimals)) => 0.1f64.powi(i32::try_from(decimals.len()).ok()?),
        None => 10f64.powi(plain.bytes().rev().take_while(|b| *b == b'0').count() as i32),
    };
    Some((value, (0.5 * last / value).clamp(*TOLERANCE.start(), *TOLERANCE.end())))
}

const UNITS: &[(&str, f64, Unit)] = &[
    ("eflops", 1e18, Unit::FlopPerSecond),
    ("pflop/s", 1e15, Unit::FlopPerSecond),
    ("pflops", 1e15, Unit::FlopPerSecond),
    ("pflop", 1e15, Unit::FlopPerSecond),
    ("petaflops", 1e15, Unit::FlopPerSecond),
    ("pf", 1e15, Unit::FlopPerSecond),
    ("tflop/s", 1e12, Unit::FlopPerSecond),
    ("tflops", 1e12, Unit::FlopPerSecond),
    ("tflop", 1e12, Unit::FlopPerSecond),
    ("teraflops", 1e12, Unit::FlopPerSecond),
    ("tf", 1e12, Unit::FlopPerSecond),
    ("gflop/s", 1e9, Unit::FlopPerSecond),
    ("gflops", 1e9, Unit::FlopPerSecond),
    ("pop/s", 1e15, Unit::OpPerSecond),
    ("pops", 1e15, Unit::OpPerSecond),
    ("top/s", 1e12, Unit::OpPerSecond),
    ("tops", 1e12, Unit::OpPerSecond),
    ("ai tops", 1e12, Unit::OpPerSecond),
    ("万亿次", 1e12, Unit::FlopPerSecond),
    ("tib/s", 1_099_511_627_776.0, Unit::BytePerSecond),
    ("gib/s", 1_073_741_824.0, Unit::BytePerSecond),
    ("tb/s", 1e12, Unit::BytePerSecond),
    ("gb/s", 1e9, Unit::BytePerSecond),
    ("mb/s", 1e6, Unit::BytePerSecond),
    ("tb/sec", 1e12, Unit::BytePerSecond),
    ("gb/sec", 1e9, Unit::BytePerSecond),
    ("tbps", 1e12, Unit::BytePerSecond),
    ("gbps", 1e9, Unit::BytePerSecond),
    ("tib", 1_099_511_627_776.0, Unit::Byte),
    ("gib", 1_073_741_824.0, Unit::Byte),
    ("mib", 1_048_576.0, Unit::Byte),
    ("tb", 1e12, Unit::Byte),
    ("gb", 1e9, Unit::Byte),
    ("mb", 1e6, Unit::Byte),
    ("ghz", 1e9, Unit::Hertz),
    ("mhz", 1e6, Unit::Hertz),
    ("kw", 1e3, Unit::Watt),
    ("watts", 1.0, Unit::Watt),
    ("w", 1.0, Unit::Watt),
    ("sms", 1.0, Unit::Count),
    ("sm", 1.0, Unit::Count),
    ("cus", 1.0, Unit::Count),
    ("cu", 1.0, Unit::Count),
    ("xe-cores", 1.0, Unit::Count),
];

/// Scale, unit, whether it is a size to the byte, and length of the unit at the beginning of `rest`.
fn unit(rest: &str, has_type: bool) -> Option<(f64, Unit, bool, usize)> {
    let skipped = rest.len() - rest.trim_start_matches([' ', '-']).len();
    let written = &rest[skipped..];
    let lower = written.to_ascii_lowercase();
    let ends = |length: usize| !lower[length..].starts_with(|c: char| c.is_ascii_alphanumeric() || c == '/');
    let all = UNITS.iter().filter(|(name, ..)| lower.starts_with(name) && ends(name.len()));
    if let Some((name, scale, unit)) = all.max_by_key(|(name, ..)| name.len()) {
        let bits = *unit == Unit::BytePerSecond && is_bits(&written[..name.len()]);
        return Some((if bits { scale / 8.0 } else { *scale }, *unit, *name == "mib", skipped + name.len()));
    }
    // Letters alone: "312T" beside a type is a rate, "80G" is a size.
    let short =
        [("p", 1e15, Unit::FlopPerSecond, true), ("t", 1e12, Unit::FlopPerSecond, true), ("g", 1e9, Unit::Byte, false)];
    let found =
        short.into_iter().find(|(name, _, _, of_type)| lower.starts_with(name) && ends(1) && (!of_type || has_type))?;
    Some((found.1, found.2, false, skipped + 1))
}

/// "Gb/s" and "Gbps" are bits; "GB/s", "gb/s" and "GBps" are bytes.
fn is_bits(written: &str) -> bool {
    let b = written.as_bytes().get(1).copied();
    let is_capital = written.starts_with(|c: char| c.is_ascii_uppercase());
    match written.to_ascii_lowercase().ends_with("bps") {
        true => b == Some(b'b'),
        false => b == Some(b'b') && is_capital,
    }
}
