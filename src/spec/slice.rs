//! Slices: parts of a GPU that its driver shows as a device of their own. A MIG instance has its share of units,
//! memory, bandwidth and caches for itself; a time-shared vGPU has its share of memory and takes turns with the rest.
//!
//! Shares of MIG profiles: NVIDIA MIG User Guide, "Supported MIG Profiles" (A100, H100 and later: sevenths of the units,
//! eighths of memory and L2; A30: quarters of both). They are fractions of the full chip: the units that a driver gives
//! to a slice may be fewer (98 of an A100's 108 are usable at all in MIG mode), so that nothing derived here decides.

use serde::Serialize;

use super::{GpuSpec, Provenance};
use crate::unit::Quantity;

/// How a part is cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SliceKind {
    /// Multi-Instance GPU: units and memory of its own.
    Mig,
    /// vGPU: memory of its own, units by turns.
    Vgpu,
}

/// A slice as its profile names it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Slice {
    /// The profile as written, e.g. `3g.40gb` or `20C`.
    pub profile: String,
    /// How it is cut off.
    pub kind: SliceKind,
    /// Slices of units, of [`GpuSpec::mig_max_instances`]; `None` for a vGPU.
    pub compute: Option<u32>,
    /// Memory that the profile's name says, in bytes.
    pub memory: f64,
}

/// A figure of a slice: always [`Provenance::Derived`].
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SliceFigure {
    /// Name, see [`super::FIGURES`].
    pub name: String,
    /// Value.
    pub value: Quantity,
    /// How it is known.
    pub provenance: Provenance,
    /// The share, e.g. "3/7".
    pub share: String,
}

impl Slice {
    /// A profile: `3g.40gb`, `1g.10gb+me`, `1c.3g.40gb` (part of the units of a MIG instance), `20C`, `8Q`.
    pub fn parse(profile: &str) -> Option<Slice> {
        let lower = profile.trim().to_lowercase();
        mig(&lower).or_else(|| vgpu(&lower)).map(|s| Slice { profile: profile.trim().to_owned(), ..s })
    }

    /// The slice that a driver's device name speaks of: "NVIDIA H100 80GB HBM3 MIG 3g.40gb", "GRID A100-20C".
    pub fn of_name(name: &str) -> Option<Slice> {
        match split_mig(name) {
            Some((_, profile)) => Slice::parse(profile).filter(|s| s.kind == SliceKind::Mig),
            None => Slice::parse(name.rsplit_once('-')?.1).filter(|s| s.kind == SliceKind::Vgpu),
        }
    }

    /// Its figures on `gpu`, per device. Err: why `gpu` has no such slice.
    pub fn figures(&self, gpu: &GpuSpec) -> Result<Vec<SliceFigure>, String> {
        let size = gpu.device_value("memory_size").ok_or("the memory size of the model is not known")?;
        if self.memory > 1.1 * size {
            return Err(format!("{} has less memory than the profile {}", gpu.id, self.profile));
        }
        let Some(compute) = self.compute else {
            let share = format!("{:.3} of the memory", self.memory / size);
            return Ok(self.figure(gpu, "memory_size", 1.0, &share).into_iter().collect());
        };
        let most = gpu.mig_max_instances.ok_or_else(|| format!("{} cannot be cut into MIG instances", gpu.id))?;
        if compute > most {
            return Err(format!("{} has {most} slices, not {compute}", gpu.id));
        }
        let parts = memory_parts(most);
        let own = (f64::from(parts) * self.memory / size).round().clamp(1.0, f64::from(parts));
        let all = gpu.figures.keys().filter_map(|name| match name.as_str() {
            "memory_size" => self.figure(gpu, name, 1.0, &format!("{own}/{parts}")),
            "memory_bandwidth" | "memory_bus_bits" | "l2" => {
                self.figure(gpu, name, own / f64::from(parts), &format!("{own}/{parts}"))
            }
            _ if is_rate(gpu, name) => {
                self.figure(gpu, name, f64::from(compute) / f64::from(most), &format!("{compute}/{most}"))
            }
            _ => None,
        });
        Ok(all.collect())
    }

    fn figure(&self, gpu: &GpuSpec, name: &str, share: f64, text: &str) -> Option<SliceFigure> {
        let figure = gpu.figure(name)?;
        let whole = if name == "memory_size" { self.memory } else { gpu.device_value(name)? };
        Some(SliceFigure {
            name: name.to_owned(),
            value: Quantity { value: whole * share, unit: figure.value.unit },
            provenance: Provenance::Derived,
            share: text.to_owned(),
        })
    }
}

/// Rates of the compute units.
fn is_rate(gpu: &GpuSpec, name: &str) -> bool {
    use crate::unit::Unit;
    gpu.figure(name).is_some_and(|f| matches!(f.value.unit, Unit::FlopPerSecond | Unit::OpPerSecond))
}

/// Slices of memory beside `most` slices of units: eight beside seven, else as many.
fn memory_parts(most: u32) -> u32 {
    if most == 7 { 8 } else { most }
}

/// Device name and profile of a MIG instance.
pub(super) fn split_mig(name: &str) -> Option<(&str, &str)> {
    name.rsplit_once(" MIG ").filter(|(_, profile)| mig(&profile.trim().to_lowercase()).is_some())
}

/// `[Nc.]Ng.NNgb[+extras]`; a part of an instance's units counts as those.
fn mig(text: &str) -> Option<Slice> {
    let (profile, _) = text.split_once(['+', '-']).unwrap_or((text, ""));
    let mut words = profile.split('.').peekable();
    let part = words.next_if(|w| w.ends_with('c')).map(|w| count(w, 'c'));
    let instance = count(words.next()?, 'g')?;
    let memory: f64 = words.next()?.strip_suffix("gb")?.parse().ok()?;
    let compute = part.unwrap_or(Some(instance))?;
    (words.next().is_none() && compute <= instance && memory > 0.0).then(|| Slice {
        profile: String::new(),
        kind: SliceKind::Mig,
        compute: Some(compute),
        memory: memory * 1e9,
    })
}

fn count(word: &str, letter: char) -> Option<u32> {
    word.strip_suffix(letter)?.parse().ok().filter(|n| (1..=8).contains(n))
}

/// Gigabytes and the edition's letter: A (applications), B (PC), C (compute), Q (workstation).
fn vgpu(text: &str) -> Option<Slice> {
    let size = text.strip_suffix(['a', 'b', 'c', 'q'])?;
    let is_number = !size.is_empty() && size.len() <= 3 && size.bytes().all(|b| b.is_ascii_digit());
    let memory: f64 = is_number.then(|| size.parse().ok()).flatten()?;
    (memory > 0.0).then(|| Slice { profile: String::new(), kind: SliceKind::Vgpu, compute: None, memory: memory * 1e9 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{LookupKey, Match, table};

    #[test]
    fn profiles_and_names() {
        let parsed = |text: &str| Slice::parse(text).map(|s| (s.kind, s.compute, s.memory / 1e9));
        assert_eq!(parsed("3g.40gb"), Some((SliceKind::Mig, Some(3), 40.0)));
        assert_eq!(parsed("1g.10gb+me"), Some((SliceKind::Mig, Some(1), 10.0)));
        assert_eq!(parsed("1c.3g.40gb"), Some((SliceKind::Mig, Some(1), 40.0)));
        assert_eq!(parsed("20C"), Some((SliceKind::Vgpu, None, 20.0)));
        for bad in [
            "",
            "g",
            "0g.5gb",
            "9g.80gb",
            "3g",
            "3g.40",
            "4c.3g.40gb",
            "3g.40gb.x",
            "-1g.5gb",
            "C",
            "0Q",
            "4090",
            "nang",
        ] {
            assert_eq!(parsed(bad), None, "{bad}");
        }
        let named = |name: &str| Slice::of_name(name).map(|s| s.profile);
        assert_eq!(named("NVIDIA H100 80GB HBM3 MIG 3g.40gb").as_deref(), Some("3g.40gb"));
        assert_eq!(named("GRID A100-20C").as_deref(), Some("20C"));
        assert_eq!(named("NVIDIA A40-48Q").as_deref(), Some("48Q"));
        for gpu in table().all() {
            for name in gpu.device_names.iter().chain(&gpu.other_names).chain([&gpu.name, &gpu.id]) {
                assert_eq!(named(name), None, "{name} is a whole GPU");
            }
        }
    }

    /// NVIDIA MIG User Guide: A100 1g.10gb is 1/8 of the memory and 1/7 of the units, 3g.40gb 4/8 and 3/7; A30 2g.12gb
    /// half of both.
    #[test]
    fn shares_are_those_of_the_guide() {
        let rounded = |x: f64| (x * 1e9).round() / 1e9;
        let shares = |gpu: &str, profile: &str| {
            let gpu = table().get(gpu).unwrap();
            let all = Slice::parse(profile).unwrap().figures(gpu).unwrap();
            let of = |name: &str| all.iter().find(|f| f.name == name).map(|f| (f.share.clone(), f.value.value));
            let (memory, bandwidth) = of("memory_bandwidth").unwrap();
            let (units, rate) = of("fp16_tensor_fp32acc").unwrap();
            assert!(all.iter().all(|f| f.provenance == Provenance::Derived));
            (
                memory,
                rounded(bandwidth / gpu.device_value("memory_bandwidth").unwrap()),
                units,
                rounded(rate / gpu.device_value("fp16_tensor_fp32acc").unwrap()),
            )
        };
        let expected = |m: &str, b: f64, u: &str, r: f64| (m.to_owned(), b, u.to_owned(), rounded(r));
        assert_eq!(shares("a100-sxm4-80gb", "1g.10gb"), expected("1/8", 0.125, "1/7", 1.0 / 7.0));
        assert_eq!(shares("h100-sxm5-80gb", "3g.40gb"), expected("4/8", 0.5, "3/7", 3.0 / 7.0));
        assert_eq!(shares("h200-sxm-141gb", "1g.18gb"), expected("1/8", 0.125, "1/7", 1.0 / 7.0));
        assert_eq!(shares("a30", "2g.12gb"), expected("2/4", 0.5, "2/4", 0.5));
        assert_eq!(shares("h100-sxm5-80gb", "7g.80gb"), expected("8/8", 1.0, "7/7", 1.0));
    }

    #[test]
    fn a_slice_of_another_card_or_of_one_without_slices_is_refused() {
        let figures = |gpu: &str, profile: &str| Slice::parse(profile).unwrap().figures(table().get(gpu).unwrap());
        assert!(figures("a30", "7g.24gb").unwrap_err().contains("4 slices"));
        assert!(figures("a100-sxm4-40gb", "3g.71gb").unwrap_err().contains("less memory"));
        assert!(figures("rtx-4090", "1g.5gb").unwrap_err().contains("cannot be cut"));
        // A vGPU takes turns: only its memory is its own.
        let names: Vec<String> = figures("a40", "8Q").unwrap().into_iter().map(|f| f.name).collect();
        assert_eq!(names, ["memory_size"]);
    }

    #[test]
    fn the_model_of_a_slice_is_that_of_its_card() {
        let key = LookupKey { name: Some("NVIDIA H100 80GB HBM3 MIG 3g.40gb"), ..LookupKey::default() };
        assert!(matches!(table().lookup(&key), Match::One { spec, .. } if spec.id == "h100-sxm5-80gb"));
    }
}
