//! Reads spec files: TOML, every key known, every error with file and line.
//!
//! ```toml
//! vendor = "nvidia"                # nvidia, amd, intel
//! architecture = "Hopper"
//!
//! [source.h100-white-paper]        # what figures and entries refer to
//! title = "NVIDIA H100 white paper"
//!
//! [[gpu]]                          # one per model
//! id = "h100-sxm5-80gb"            # stable key, unique over all files
//! name = "H100 SXM5 80GB"          # marketing name
//! device_names = ["NVIDIA H100 80GB HBM3"]   # as drivers report it; other_names: older drivers, other tools
//! form_factor = "SXM5"
//! unit_kind = "SM"
//! unit_count = 132                 # of the package as sold; left out if not known
//! ops_class = "gh100"              # table of operations-per-clock.toml
//! sources = ["h100-white-paper"]
//!
//! [[gpu.pci]]
//! id = "10de:2330"
//! subsystems = ["10de:16c0"]       # only boards with these carry the model; left out: any
//!
//! [gpu.figures]                    # names and units: `spec::FIGURES`; what is not known is left out
//! memory_bandwidth = { value = "3352 GB/s", provenance = "published", source = "h100-white-paper" }
//! # exception = { deviation = "-2.4 %", reason = "…" } where it is known not to follow from units and clocks
//! ```

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

use serde::Deserialize;
use toml::Spanned;

use super::derive::OpsTable;
use super::lookup::nearest;
use super::{FIGURES, Figure, GpuSpec, PciMatch, Provenance, figure_unit};
use crate::unit::{Quantity, Unit};

/// A spec file that cannot be used, with the place.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{file}:{line}:{column}: {message}{}", help.as_ref().map(|h| format!(" ({h})")).unwrap_or_default())]
pub struct ParseError {
    /// Name of the file.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// Bytes of the text that are meant.
    pub span: Range<usize>,
    /// What is wrong.
    pub message: String,
    /// What may have been meant.
    pub help: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFile {
    vendor: String,
    architecture: String,
    #[serde(default)]
    source: BTreeMap<String, RawSource>,
    #[serde(default)]
    gpu: Vec<RawGpu>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSource {
    title: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawGpu {
    id: Spanned<String>,
    name: String,
    device_names: Vec<String>,
    #[serde(default)]
    other_names: Vec<String>,
    die: Option<String>,
    form_factor: String,
    target: Option<String>,
    unit_kind: String,
    unit_count: Option<u32>,
    #[serde(default = "one")]
    devices_per_package: Spanned<u32>,
    #[serde(default = "one")]
    gpus_per_board: Spanned<u32>,
    ops_class: Option<Spanned<String>>,
    memory_type: Option<String>,
    #[serde(default)]
    memory_reported_other: Vec<Spanned<String>>,
    ecc: Option<String>,
    mig_max_instances: Option<u32>,
    peer_link: Option<String>,
    #[serde(default)]
    sparsity_doubles: Vec<Spanned<String>>,
    /// By figure, where the factor is not 2.
    #[serde(default)]
    sparsity_factors: BTreeMap<Spanned<String>, f64>,
    #[serde(default)]
    unsupported: Vec<Spanned<String>>,
    marketing_basis: Option<String>,
    sources: Vec<Spanned<String>>,
    #[serde(default)]
    notes: Vec<String>,
    #[serde(default)]
    disagreements: Vec<String>,
    #[serde(default)]
    low_confidence: Vec<String>,
    #[serde(default)]
    pci: Vec<RawPci>,
    #[serde(default)]
    figures: BTreeMap<Spanned<String>, RawFigure>,
}

fn one() -> Spanned<u32> {
    Spanned::new(0..0, 1)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPci {
    id: Spanned<String>,
    #[serde(default)]
    subsystems: Vec<Spanned<String>>,
    name: Option<String>,
    #[serde(default)]
    driver_names: Vec<String>,
    note: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFigure {
    value: Spanned<String>,
    provenance: Provenance,
    source: Spanned<String>,
    exception: Option<RawException>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawException {
    deviation: Spanned<String>,
    reason: String,
}

/// One file while it is read: turns spans into errors with a place.
struct Reader<'f> {
    file: &'f str,
    text: &'f str,
    sources: BTreeMap<String, RawSource>,
}

/// All models of `files`, `(name, text)`, in order.
pub(super) fn files(files: &[(&str, &str)]) -> Result<Vec<GpuSpec>, ParseError> {
    let mut gpus = Vec::new();
    let mut ids = HashSet::new();
    for (file, text) in files {
        let mut reader = Reader { file, text, sources: BTreeMap::new() };
        let raw: RawFile = toml::from_str(text)
            .map_err(|e| reader.error(e.span().unwrap_or(0..0), e.message().trim_end().to_owned(), None))?;
        reader.sources = raw.source;
        for gpu in raw.gpu {
            if !ids.insert(gpu.id.get_ref().clone()) {
                return Err(reader.error(
                    gpu.id.span(),
                    format!("the id \"{}\" is used twice", gpu.id.get_ref()),
                    None,
                ));
            }
            gpus.push(reader.gpu(gpu, &raw.vendor, &raw.architecture)?);
        }
    }
    Ok(gpus)
}

impl Reader<'_> {
    fn error(&self, span: Range<usize>, message: String, help: Option<String>) -> ParseError {
        let before = self.text.get(..span.start).unwrap_or_default();
        let line_start = before.rfind('\n').map_or(0, |i| i + 1);
        ParseError {
            file: self.file.to_owned(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            span,
            message,
            help,
        }
    }

    fn gpu(&self, raw: RawGpu, vendor: &str, architecture: &str) -> Result<GpuSpec, ParseError> {
        if raw.unit_count == Some(0) {
            return Err(self.error(raw.id.span(), "unit_count is 0; leave it out if it is not known".to_owned(), None));
        }
        let mut figures = BTreeMap::new();
        for (name, figure) in raw.figures {
            let unit = self.figure_name(&name)?;
            figures.insert(name.into_inner(), self.figure(figure, unit)?);
        }
        let names = |list: Vec<Spanned<String>>| -> Result<Vec<String>, ParseError> {
            list.into_iter().map(|n| self.figure_name(&n).map(|_| n.into_inner())).collect()
        };
        let memory = |text: Spanned<String>| self.quantity(&text, Unit::Byte);
        Ok(GpuSpec {
            id: raw.id.into_inner(),
            vendor: vendor.to_owned(),
            name: raw.name,
            device_names: raw.device_names,
            other_names: raw.other_names,
            pci: raw.pci.into_iter().map(|p| self.pci(p)).collect::<Result<_, _>>()?,
            architecture: architecture.to_owned(),
            die: raw.die,
            form_factor: raw.form_factor,
            target: raw.target,
            unit_kind: raw.unit_kind,
            unit_count: raw.unit_count,
            devices_per_package: self.positive(raw.devices_per_package)?,
            gpus_per_board: self.positive(raw.gpus_per_board)?,
            figures,
            unsupported: names(raw.unsupported)?,
            sparsity_doubles: names(raw.sparsity_doubles)?,
            sparsity_factors: raw.sparsity_factors.into_iter().map(|(n, f)| (n.into_inner(), f)).collect(),
            memory_type: raw.memory_type,
            memory_reported_other: raw.memory_reported_other.into_iter().map(memory).collect::<Result<_, _>>()?,
            ecc: raw.ecc,
            peer_link: raw.peer_link,
            mig_max_instances: raw.mig_max_instances,
            marketing_basis: raw.marketing_basis,
            sources: raw.sources.iter().map(|s| self.source(s)).collect::<Result<_, _>>()?,
            notes: raw.notes,
            disagreements: raw.disagreements,
            low_confidence: raw.low_confidence,
            ops_class: raw.ops_class.map(|c| self.ops_class(c)).transpose()?,
        })
    }

    fn figure(&self, raw: RawFigure, unit: Unit) -> Result<Figure, ParseError> {
        let value = self.quantity(&raw.value, unit)?;
        if value.value <= 0.0 {
            let message = "a figure is positive; leave it out if it is not known".to_owned();
            return Err(self.error(raw.value.span(), message, None));
        }
        let (note, deviation) = match raw.exception {
            None => (None, None),
            Some(e) => (Some(e.reason), Some(self.quantity(&e.deviation, Unit::Ratio)?.value)),
        };
        Ok(Figure { value, provenance: raw.provenance, source: self.source(&raw.source)?, note, deviation })
    }

    fn quantity(&self, text: &Spanned<String>, unit: Unit) -> Result<Quantity, ParseError> {
        let q: Quantity = text.get_ref().parse().map_err(|e| self.error(text.span(), format!("{e}"), None))?;
        if q.unit == unit {
            return Ok(q);
        }
        let wanted = if unit == Unit::Count { "a plain number" } else { unit.symbol() };
        Err(self.error(text.span(), format!("\"{}\" is not in {wanted}", text.get_ref()), None))
    }

    fn positive(&self, n: Spanned<u32>) -> Result<u32, ParseError> {
        match *n.get_ref() {
            0 => Err(self.error(n.span(), "must be at least 1".to_owned(), None)),
            n => Ok(n),
        }
    }

    fn figure_name(&self, name: &Spanned<String>) -> Result<Unit, ParseError> {
        figure_unit(name.get_ref()).ok_or_else(|| {
            let near = nearest(name.get_ref(), FIGURES.iter().map(|(n, _)| *n));
            self.unknown(name, "figure", near)
        })
    }

    fn source(&self, key: &Spanned<String>) -> Result<String, ParseError> {
        match self.sources.get(key.get_ref()) {
            Some(source) => Ok(source.title.clone()),
            None => Err(self.unknown(key, "[source] of this file", nearest(key.get_ref(), self.sources.keys()))),
        }
    }

    fn ops_class(&self, class: Spanned<String>) -> Result<String, ParseError> {
        let table = OpsTable::embedded();
        if table.has(class.get_ref()) {
            return Ok(class.into_inner());
        }
        Err(self.unknown(&class, "class of operations-per-clock.toml", nearest(class.get_ref(), table.classes())))
    }

    fn unknown(&self, name: &Spanned<String>, kind: &str, near: Vec<String>) -> ParseError {
        let help = (!near.is_empty()).then(|| format!("did you mean {}?", near.join(", ")));
        self.error(name.span(), format!("\"{}\" is no {kind}", name.get_ref()), help)
    }

    fn pci(&self, raw: RawPci) -> Result<PciMatch, ParseError> {
        let (vendor, device) = self.id_pair(&raw.id)?;
        Ok(PciMatch {
            vendor,
            device,
            subsystems: raw.subsystems.iter().map(|s| self.id_pair(s)).collect::<Result<_, _>>()?,
            name: raw.name,
            driver_names: raw.driver_names,
            note: raw.note,
        })
    }

    fn id_pair(&self, text: &Spanned<String>) -> Result<(u16, u16), ParseError> {
        let hex = |t: &str| (t.len() == 4).then(|| u16::from_str_radix(t, 16).ok()).flatten();
        let pair = text.get_ref().split_once(':').and_then(|(v, d)| Some((hex(v)?, hex(d)?)));
        pair.ok_or_else(|| {
            let message = format!("\"{}\" is not a PCI id like 10de:2330", text.get_ref());
            self.error(text.span(), message, None)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::SpecTable;

    const GOOD: &str = r#"vendor = "nvidia"
architecture = "Hopper"
[source.sheet]
title = "a sheet"
[[gpu]]
id = "x1"
name = "X1"
device_names = ["NVIDIA X1"]
form_factor = "PCIe"
unit_kind = "SM"
unit_count = 10
ops_class = "gh100"
sources = ["sheet"]
[[gpu.pci]]
id = "10de:0001"
[gpu.figures]
tdp = { value = "70 W", provenance = "published", source = "sheet" }
"#;

    #[test]
    fn a_small_file_parses() {
        let table = SpecTable::parse_files(&[("mine.toml", GOOD)]).unwrap();
        assert_eq!(table.get("x1").unwrap().figure("tdp").unwrap().value.value, 70.0);
    }

    #[test]
    fn errors_name_file_line_and_nearest() {
        for (from, to, line, words) in [
            ("tdp =", "tpd =", 17, "did you mean tdp"),
            ("70 W", "70 MHz", 17, "is not in W"),
            ("70 W", "-70 W", 17, "positive"),
            ("70 W", "hot", 17, "does not start with a number"),
            ("source = \"sheet\"", "source = \"shet\"", 17, "did you mean sheet"),
            ("\"published\"", "\"rumoured\"", 17, "published_half_sparse"),
            ("10de:0001", "10de-0001", 15, "not a PCI id"),
            ("\"gh100\"", "\"gh10\"", 12, "did you mean gh100"),
            ("unit_kind", "unit_kin", 10, "unknown field"),
            ("unit_count = 10", "unit_count = -1", 11, "invalid value"),
            ("[[gpu.pci]]", "[[gpu.pci]", 14, ""),
        ] {
            let text = GOOD.replacen(from, to, 1);
            let error = SpecTable::parse_files(&[("mine.toml", &text)]).unwrap_err();
            assert_eq!((error.file.as_str(), error.line), ("mine.toml", line), "{to}: {error}");
            assert!(error.to_string().contains(words), "{to}: {error}");
        }
    }

    #[test]
    fn an_id_is_used_once() {
        let error = SpecTable::parse_files(&[("a.toml", GOOD), ("b.toml", GOOD)]).unwrap_err();
        assert_eq!((error.file.as_str(), error.line), ("b.toml", 6));
        assert!(error.message.contains("used twice"));
    }
}
