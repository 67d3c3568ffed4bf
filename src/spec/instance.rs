//! Rented instance types: what a provider sells under a name. Data in `specs/instances.toml`.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

/// One instance type.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instance {
    /// Stable key, e.g. `aws/p5.48xlarge`.
    pub id: String,
    /// Provider.
    pub provider: String,
    /// Its name there.
    pub name: String,
    /// Model in the spec table; `None` for others and for mixed offers.
    pub gpu: Option<String>,
    /// GPUs of it; `None` for slices and single offers.
    pub count: Option<u32>,
    /// Share of a GPU, where it is a slice.
    pub fraction: Option<String>,
    /// Virtual CPUs.
    pub vcpus: Option<u32>,
    /// Memory of the machine in GiB, as the provider prints it.
    pub ram_gib: Option<f64>,
    /// Network in Gbit/s, front end or aggregate as the provider lists it.
    pub network_gbps: Option<f64>,
    /// Local disks together, decimal GB.
    pub nvme_gb: Option<f64>,
    /// vm, bare_metal, container.
    pub virtualization: Option<String>,
    /// How its GPUs are linked, in words.
    pub interconnect: Option<String>,
    /// Remark.
    pub note: Option<String>,
    /// What is uncertain.
    #[serde(default)]
    pub low_confidence: Vec<String>,
    /// Keys into the sources.
    pub sources: Vec<String>,
}

/// What an instance type states beside its GPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstanceField {
    /// `vcpus`
    Vcpus,
    /// `ram_gib`
    Ram,
    /// `nvme_gb`
    Storage,
    /// `network_gbps`
    Network,
    /// `interconnect`
    Link,
}

impl InstanceField {
    /// Words in `low_confidence` and `note` that put the field in doubt.
    fn doubts(self) -> &'static [&'static str] {
        match self {
            InstanceField::Vcpus => &["vcpu"],
            InstanceField::Ram => &["ram"],
            InstanceField::Storage => &["nvme", "disk", "storage", "ssd"],
            InstanceField::Network => &["network", "efa", "infiniband"],
            InstanceField::Link => &["nvlink", "nvswitch", "xgmi", "interconnect", "form factor"],
        }
    }
}

impl Instance {
    /// True if the table itself is not sure of a field, or states only the most that can be ordered: no number to hold a
    /// machine against. How a total is split over drives or cards leaves the total certain.
    pub fn is_uncertain(&self, field: InstanceField) -> bool {
        let note = self.note.iter().filter(|n| n.contains("optional") || n.contains("maximum"));
        let doubts = self.low_confidence.iter().chain(note).map(|d| d.to_lowercase());
        let is_about = |doubt: &str| {
            let plain: String = doubt.chars().map(|c| if c.is_alphanumeric() { c } else { ' ' }).collect();
            field.doubts().iter().any(|w| format!(" {plain} ").contains(&format!(" {w} ")))
        };
        doubts.filter(|d| !d.contains(" split")).any(|d| is_about(&d))
    }
}

/// All instance types.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InstanceTable {
    source: BTreeMap<String, SourceTitle>,
    instance: Vec<Instance>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct SourceTitle {
    title: String,
}

impl InstanceTable {
    /// The table embedded in the binary, parsed at first use.
    pub fn embedded() -> &'static InstanceTable {
        static TABLE: OnceLock<InstanceTable> = OnceLock::new();
        TABLE.get_or_init(|| {
            let text = include_str!("../../specs/instances.toml");
            toml::from_str(text).expect("the embedded instance table parses (tested)")
        })
    }

    /// All, in file order.
    pub fn all(&self) -> &[Instance] {
        &self.instance
    }

    /// By id, or by the provider's name where only one provider has it.
    pub fn get(&self, text: &str) -> Option<&Instance> {
        let wanted = text.trim().to_lowercase();
        if let Some(one) = self.instance.iter().find(|i| i.id == wanted) {
            return Some(one);
        }
        let mut named = self.instance.iter().filter(|i| i.name.to_lowercase() == wanted);
        named.next().filter(|_| named.next().is_none())
    }

    /// As [`InstanceTable::get`], or by the provider's name where several providers have it.
    pub fn of(&self, provider: &str, text: &str) -> Option<&Instance> {
        self.get(text).or_else(|| self.get(&format!("{}/{}", provider.trim(), text.trim())))
    }

    /// Ids that look most like `text`, best first.
    pub fn nearest(&self, text: &str) -> Vec<String> {
        super::nearest(text, self.instance.iter().map(|i| i.id.as_str()))
    }

    /// The type that a machine says it is ("Amazon EC2 p5.48xlarge"): the longest name that stands in the text as a
    /// word. Only a proposal: what a machine says of itself is not what was sold.
    pub fn proposed(&self, cloud: &str) -> Option<&Instance> {
        let text = cloud.to_lowercase();
        let words: Vec<&str> = text.split([' ', ',', ';', '(', ')', '"']).collect();
        let stands = |i: &&Instance| words.contains(&i.name.to_lowercase().as_str());
        self.instance.iter().filter(stands).max_by_key(|i| i.name.len())
    }

    /// The titles of an instance's sources.
    pub fn sources<'t>(&'t self, instance: &'t Instance) -> impl Iterator<Item = &'t str> {
        instance.sources.iter().filter_map(|key| self.source.get(key)).map(|s| s.title.as_str())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_row_names_a_known_model_and_its_sources() {
        let table = InstanceTable::embedded();
        assert!(table.all().len() >= 215);
        let ids: BTreeSet<&str> = table.all().iter().map(|i| i.id.as_str()).collect();
        assert_eq!(ids.len(), table.all().len(), "an id occurs twice");
        for i in table.all() {
            assert!(i.gpu.as_ref().is_none_or(|g| crate::spec::table().get(g).is_some()), "{}: {:?}", i.id, i.gpu);
            assert!(!i.sources.is_empty() && table.sources(i).count() == i.sources.len(), "{}", i.id);
            assert!(i.fraction.is_none() || i.count.is_none(), "{}: a slice has no count", i.id);
        }
    }

    #[test]
    fn a_type_is_found_by_id_name_and_what_the_machine_says() {
        let table = InstanceTable::embedded();
        let p5 = table.get("aws/p5.48xlarge").expect("in the table");
        assert_eq!((p5.gpu.as_deref(), p5.count), (Some("h100-sxm5-80gb"), Some(8)));
        assert_eq!(table.get(" P5.48xlarge "), Some(p5));
        assert_eq!(table.proposed("Amazon EC2 p5.48xlarge"), Some(p5));
        assert_eq!(table.proposed("Amazon EC2 p5.48xlarge2"), None);
        assert_eq!(table.get("aws/p5.49xlarge"), None);
        assert_eq!(table.of("AWS", "p5.48xlarge"), Some(p5));
        assert!(table.nearest("aws/p5.49xlarge").contains(&"aws/p5.48xlarge".to_owned()));
    }

    #[test]
    fn what_the_table_is_not_sure_of_is_known() {
        let table = InstanceTable::embedded();
        let is = |id: &str, field| table.get(id).unwrap_or_else(|| panic!("{id}")).is_uncertain(field);
        // The split over drives leaves the total certain.
        assert!(!is("aws/g4dn.xlarge", InstanceField::Storage));
        let uncertain = |field| table.all().iter().filter(|i| i.is_uncertain(field)).count();
        for (field, least) in [
            (InstanceField::Storage, 17),
            (InstanceField::Network, 20),
            (InstanceField::Link, 30),
            (InstanceField::Vcpus, 1),
            (InstanceField::Ram, 2),
        ] {
            assert!((least..150).contains(&uncertain(field)), "{field:?}: {}", uncertain(field));
        }
    }
}
