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
        assert!(table.nearest("aws/p5.49xlarge").contains(&"aws/p5.48xlarge".to_owned()));
    }
}
