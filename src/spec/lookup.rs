//! Which model is this: by what the hardware says of itself, or by what people write in an offer.

use super::{GpuSpec, SpecTable};
use crate::record::PciIdentity;
use crate::unit::Bytes;

/// What is known about a device. Everything is optional; more tells models apart better.
#[derive(Debug, Clone, Copy, Default)]
pub struct LookupKey<'k> {
    /// Vendor and device id.
    pub pci: Option<(u16, u16)>,
    /// Subsystem vendor and device id.
    pub subsystem: Option<(u16, u16)>,
    /// Name the driver reports.
    pub name: Option<&'k str>,
    /// Memory the driver reports.
    pub memory: Option<Bytes>,
}

impl<'k> LookupKey<'k> {
    /// From what a backend shows.
    pub fn new(pci: Option<&PciIdentity>, name: &'k str, memory: Option<Bytes>) -> LookupKey<'k> {
        LookupKey {
            pci: pci.map(|p| (p.vendor, p.device)),
            subsystem: pci.and_then(|p| p.subsystem),
            name: Some(name),
            memory,
        }
    }
}

/// The evidence that decided a lookup: hardware ids before anything a driver can print.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum MatchedBy {
    /// The PCI id alone.
    PciId,
    /// PCI id and subsystem.
    Subsystem,
    /// PCI id and memory size.
    Memory,
    /// The name, because ids did not decide or were not there.
    Name,
}

/// Result of a lookup. Ambiguity is a value, not a guess.
#[derive(Debug, Clone, PartialEq)]
pub enum Match<'t> {
    /// This model.
    One {
        /// the model
        spec: &'t GpuSpec,
        /// what decided
        by: MatchedBy,
    },
    /// Any of these.
    Ambiguous(Vec<&'t GpuSpec>),
    /// None in the table.
    Unknown,
}

impl<'t> Match<'t> {
    /// The model, if there is exactly one.
    pub fn one(&self) -> Option<&'t GpuSpec> {
        match self {
            Match::One { spec, .. } => Some(spec),
            _ => None,
        }
    }
}

/// What a model name written by a person stands for.
#[derive(Debug, Clone, PartialEq)]
pub enum Resolution<'t> {
    /// This model.
    One(&'t GpuSpec),
    /// The text fits several ("H100"): the offer must say which.
    Several(Vec<&'t GpuSpec>),
    /// No model; the ids that look most like it.
    Unknown {
        /// nearest ids, best first
        nearest: Vec<String>,
    },
}

impl SpecTable {
    /// The model of a device: by PCI id, then subsystem, then memory size, then driver name. A name never
    /// overrides a PCI id the table knows: whether it contradicts the hardware is for the caller to say.
    pub fn lookup(&self, key: &LookupKey<'_>) -> Match<'_> {
        let mut by = MatchedBy::PciId;
        let mut left: Vec<&GpuSpec> = match key.pci {
            Some(pci) => self.all().iter().filter(|g| has_pci(g, pci)).collect(),
            None => Vec::new(),
        };
        if left.is_empty() {
            let Some(name) = key.name else { return Match::Unknown };
            by = MatchedBy::Name;
            left = self.reporting(name);
        }
        if let (true, Some(pci), Some(subsystem)) = (left.len() > 1, key.pci, key.subsystem) {
            narrow(&mut left, &mut by, MatchedBy::Subsystem, |g| has_subsystem(g, pci, subsystem));
        }
        if let (true, Some(memory)) = (left.len() > 1, key.memory) {
            let decided = if by == MatchedBy::Name { MatchedBy::Name } else { MatchedBy::Memory };
            narrow(&mut left, &mut by, decided, |g| fits_memory(g, memory));
        }
        if let (true, Some(name)) = (left.len() > 1, key.name) {
            narrow(&mut left, &mut by, MatchedBy::Name, |g| reports_name(g, name));
        }
        match left.as_slice() {
            [] => Match::Unknown,
            [spec] => Match::One { spec, by },
            _ => Match::Ambiguous(left),
        }
    }

    /// The model that `text` names: an id, marketing or driver name, or part of one, whatever its case, spaces
    /// and punctuation ("A100 80GB", "nvidia h100 sxm5", "RTX-4090"). Only ids and marketing names decide at once:
    /// one SKU's driver name is "NVIDIA H100", and an offer that says so may mean any H100.
    pub fn resolve(&self, text: &str) -> Resolution<'_> {
        let wanted = compact(text);
        let exact: Vec<&GpuSpec> = self.named().filter(|(_, n)| n.own.contains(&wanted)).map(|(g, _)| g).collect();
        let found = if exact.is_empty() { self.containing(text) } else { exact };
        match found.as_slice() {
            [] => Resolution::Unknown { nearest: nearest(text, self.all().iter().map(|g| g.id.as_str())) },
            [one] => Resolution::One(one),
            _ => Resolution::Several(found),
        }
    }

    /// The models that `text` may name, see [`SpecTable::resolve`]; empty where it names none.
    pub fn fitting(&self, text: &str) -> Vec<&GpuSpec> {
        match self.resolve(text) {
            Resolution::One(gpu) => vec![gpu],
            Resolution::Several(gpus) => gpus,
            Resolution::Unknown { .. } => Vec::new(),
        }
    }

    /// Models whose names hold every word of `text`.
    fn containing(&self, text: &str) -> Vec<&GpuSpec> {
        let wanted = words(text);
        if wanted.is_empty() {
            return Vec::new();
        }
        let whole = compact(text);
        // "SXM" stands for SXM2, SXM4, SXM5; digits never stand for more digits (A10 is not A100).
        let stands_for = |own: &str, w: &str| {
            own == w
                || (w.chars().all(char::is_alphabetic)
                    && own.strip_prefix(w).is_some_and(|rest| rest.chars().all(|c| c.is_ascii_digit())))
        };
        let holds =
            |n: &Names| n.reported.contains(&whole) || wanted.iter().all(|w| n.words.iter().any(|o| stands_for(o, w)));
        self.named().filter(|(_, n)| holds(n)).map(|(g, _)| g).collect()
    }

    /// Models whose drivers or tools report `name`.
    fn reporting(&self, name: &str) -> Vec<&GpuSpec> {
        let wanted = compact(name);
        self.named().filter(|(_, n)| n.reported.contains(&wanted)).map(|(g, _)| g).collect()
    }

    /// Every model with its names as they are compared, made once.
    fn named(&self) -> impl Iterator<Item = (&GpuSpec, &Names)> {
        let names = self.names.get_or_init(|| self.all().iter().map(Names::of).collect());
        self.all().iter().zip(names)
    }
}

/// The names of a model as they are compared.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Names {
    /// Id and marketing name, compact.
    own: [String; 2],
    /// What drivers and tools report, compact.
    reported: Vec<String>,
    /// Words of all names, and the size of the memory.
    words: Vec<String>,
}

impl Names {
    fn of(gpu: &GpuSpec) -> Names {
        let mut all: Vec<String> = names(gpu).flat_map(words).collect();
        all.extend(gpu.figure("memory_size").map(|size| format!("{}gb", size.value.value / 1e9)));
        Names {
            own: [compact(&gpu.id), compact(&gpu.name)],
            reported: reported(gpu).map(compact).collect(),
            words: all,
        }
    }
}

/// Keeps what `fits`, if anything does; `by` becomes `decided` if that left fewer.
fn narrow(left: &mut Vec<&GpuSpec>, by: &mut MatchedBy, decided: MatchedBy, fits: impl Fn(&GpuSpec) -> bool) {
    let kept: Vec<&GpuSpec> = left.iter().copied().filter(|g| fits(g)).collect();
    if !kept.is_empty() && kept.len() < left.len() {
        *left = kept;
        *by = decided;
    }
}

fn has_pci(gpu: &GpuSpec, (vendor, device): (u16, u16)) -> bool {
    gpu.pci.iter().any(|p| (p.vendor, p.device) == (vendor, device))
}

fn has_subsystem(gpu: &GpuSpec, (vendor, device): (u16, u16), subsystem: (u16, u16)) -> bool {
    gpu.pci.iter().any(|p| (p.vendor, p.device) == (vendor, device) && p.subsystems.contains(&subsystem))
}

/// Within 1 % of a size some driver reports, or 7 % below to 9 % above the size in the name (binary against
/// decimal, ECC).
fn fits_memory(gpu: &GpuSpec, memory: Bytes) -> bool {
    let devices = f64::from(gpu.devices_per_package);
    let reported = gpu.figure("memory_reported").map(|f| f.value.value);
    let known = reported.into_iter().chain(gpu.memory_reported_other.iter().map(|q| q.value));
    let close = |size: f64| (memory.0 / (size / devices) - 1.0).abs() < 0.01;
    known.into_iter().any(close)
        || gpu.device_value("memory_size").is_some_and(|size| (0.93..1.09).contains(&(memory.0 / size)))
}

fn reports_name(gpu: &GpuSpec, name: &str) -> bool {
    let wanted = compact(name);
    reported(gpu).any(|n| compact(n) == wanted)
}

fn reported(gpu: &GpuSpec) -> impl Iterator<Item = &str> {
    let of_pci = gpu.pci.iter().flat_map(|p| &p.driver_names);
    gpu.device_names.iter().chain(&gpu.other_names).chain(of_pci).map(String::as_str)
}

fn names(gpu: &GpuSpec) -> impl Iterator<Item = &str> {
    [gpu.id.as_str(), gpu.name.as_str()].into_iter().chain(reported(gpu))
}

/// The mark that simulated devices carry before their name is not part of the model, nor is the profile of a MIG
/// instance behind it.
fn unmarked(text: &str) -> &str {
    let text = text.strip_prefix("SIMULATED ").unwrap_or(text);
    super::slice::split_mig(text).map_or(text, |(card, _)| card)
}

/// Letters and digits only, lower case, without the vendor: how names are compared.
fn compact(text: &str) -> String {
    words(text).concat()
}

/// Words of a name, lower case, without vendor and filler; "80 GB" and "80GiB" are "80gb".
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let lower = unmarked(text).to_lowercase().replace("(r)", " ").replace("(tm)", " ");
    for word in lower.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()) {
        let word = if word.ends_with("gib") { word.replace("gib", "gb") } else { word.to_owned() };
        match (word.as_str(), words.last_mut()) {
            ("nvidia" | "amd" | "intel" | "gpu" | "gpus" | "tensor" | "core" | "graphics" | "accelerator", _) => {}
            ("gb", Some(last)) if last.chars().all(|c| c.is_ascii_digit()) => last.push_str("gb"),
            _ => words.push(word),
        }
    }
    words
}

/// Up to three of `known` that look most like `text`, best first; nothing that is mostly different.
pub(crate) fn nearest<I, S>(text: &str, known: I) -> Vec<String>
where
    I: IntoIterator<Item = S>,
    S: AsRef<str>,
{
    let wanted = compact_plain(text);
    let mut scored: Vec<(usize, String)> = known
        .into_iter()
        .filter_map(|k| {
            let own = compact_plain(k.as_ref());
            let distance = edit_distance(&wanted, &own);
            (distance * 2 <= own.len().max(wanted.len()) + 1 && distance < own.len().min(wanted.len()))
                .then(|| (distance, k.as_ref().to_owned()))
        })
        .collect();
    scored.sort();
    scored.into_iter().take(3).map(|(_, k)| k).collect()
}

fn compact_plain(text: &str) -> Vec<char> {
    text.to_lowercase().chars().filter(|c| c.is_alphanumeric()).take(64).collect()
}

/// Levenshtein distance.
fn edit_distance(a: &[char], b: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(ca != cb);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::super::table;
    use super::*;

    fn found(key: LookupKey<'_>) -> Option<(&'static str, MatchedBy)> {
        match table().lookup(&key) {
            Match::One { spec, by } => Some((spec.id.as_str(), by)),
            _ => None,
        }
    }

    #[test]
    fn pci_id_comes_before_the_name() {
        let key = LookupKey { pci: Some((0x10de, 0x2330)), name: Some("NVIDIA H200"), ..LookupKey::default() };
        assert_eq!(found(key), Some(("h100-sxm5-80gb", MatchedBy::PciId)));
    }

    #[test]
    fn shared_ids_are_told_apart_or_stay_ambiguous() {
        let rtx = LookupKey { pci: Some((0x10de, 0x1e30)), ..LookupKey::default() };
        assert!(matches!(table().lookup(&rtx), Match::Ambiguous(v) if v.len() == 2));
        let big = LookupKey { memory: Some(Bytes::mib(49152)), ..rtx };
        assert_eq!(found(big), Some(("quadro-rtx-8000", MatchedBy::Memory)));
        let a16 = LookupKey {
            pci: Some((0x10de, 0x25b6)),
            subsystem: Some((0x10de, 0x14a9)),
            memory: Some(Bytes::mib(15356)),
            name: None,
        };
        assert_eq!(found(a16), Some(("a16", MatchedBy::Subsystem)));
        let mi250 = LookupKey { pci: Some((0x1002, 0x740c)), memory: Some(Bytes::gib(64)), ..LookupKey::default() };
        assert!(matches!(table().lookup(&mi250), Match::Ambiguous(_)));
        let named = LookupKey { name: Some("AMD Instinct MI250X"), ..mi250 };
        assert_eq!(found(named), Some(("mi250x", MatchedBy::Name)));
    }

    #[test]
    fn without_an_id_the_name_and_memory_decide() {
        let key = LookupKey { name: Some("NVIDIA A100-SXM4-80GB"), ..LookupKey::default() };
        assert_eq!(found(key), Some(("a100-sxm4-80gb", MatchedBy::Name)));
        let v100 = LookupKey { name: Some("Tesla V100-SXM2-16GB"), ..LookupKey::default() };
        assert_eq!(found(v100), Some(("v100-sxm2-16gb", MatchedBy::Name)));
        let nobody = LookupKey { name: Some("llvmpipe"), ..LookupKey::default() };
        assert_eq!(table().lookup(&nobody), Match::Unknown);
        assert_eq!(table().lookup(&LookupKey::default()), Match::Unknown);
    }

    #[test]
    fn every_model_is_found_by_its_own_ids_and_names() {
        for gpu in table().all() {
            for pci in &gpu.pci {
                let key = LookupKey {
                    pci: Some((pci.vendor, pci.device)),
                    subsystem: pci.subsystems.first().copied(),
                    name: gpu.device_names.first().map(String::as_str),
                    memory: gpu.device_value("memory_reported").or(gpu.device_value("memory_size")).map(Bytes),
                };
                assert_eq!(found(key).map(|f| f.0), Some(gpu.id.as_str()), "{}", gpu.id);
            }
            for text in [gpu.id.as_str(), gpu.name.as_str()] {
                assert!(matches!(table().resolve(text), Resolution::One(g) if g.id == gpu.id), "{text}");
            }
        }
    }

    #[test]
    fn resolves_what_people_write() {
        let one = |text: &str| match table().resolve(text) {
            Resolution::One(g) => g.id.clone(),
            other => panic!("{text}: {other:?}"),
        };
        assert_eq!(one("nvidia geforce rtx 4090"), "rtx-4090");
        assert_eq!(one("RTX4090"), "rtx-4090");
        assert_eq!(one("NVIDIA H100 80GB HBM3"), "h100-sxm5-80gb");
        assert_eq!(one("SIMULATED NVIDIA H100 80GB HBM3"), "h100-sxm5-80gb");
        assert_eq!(one("A100 SXM 80 GB"), "a100-sxm4-80gb");
        assert_eq!(one("A100 PCIe 40GiB"), "a100-pcie-40gb");
        assert_eq!(one("A10G"), "a10g");
        assert_eq!(one("MI300X"), "mi300x");
        assert_eq!(one("NVIDIA L4 Tensor Core GPU"), "l4");
        let several = |text: &str| match table().resolve(text) {
            Resolution::Several(list) => list.iter().map(|g| g.id.clone()).collect::<Vec<_>>(),
            other => panic!("{text}: {other:?}"),
        };
        assert_eq!(several("A100 80GB"), ["a100-pcie-80gb", "a100-sxm4-80gb"]);
        assert!(several("H100").len() >= 4);
        for (text, near) in [("h100-sxm5-80g", "h100-sxm5-80gb"), ("rtx-490", "rtx-4090"), ("mi300", "mi300a")] {
            match table().resolve(text) {
                Resolution::Unknown { nearest } => assert!(nearest.contains(&near.to_owned()), "{text}: {nearest:?}"),
                other => panic!("{text}: {other:?}"),
            }
        }
        assert!(matches!(table().resolve(""), Resolution::Unknown { nearest } if nearest.is_empty()));
    }
}
