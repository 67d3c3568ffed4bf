//! The closed lists of words that an offer may use.

/// How the GPUs of a machine are linked to one another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    /// NVLink through switches: every GPU reaches every other at full rate.
    NvSwitch,
    /// NVLink, whatever joins it.
    NvLink,
    /// NVLink bridges between pairs of cards.
    NvLinkBridge,
    /// AMD's xGMI or Infinity Fabric.
    Xgmi,
    /// Intel's Xe Link.
    XeLink,
    /// Nothing but PCIe.
    Pcie,
}

impl Link {
    /// All, with the words of offer files.
    pub const ALL: [(&'static str, Link); 6] = [
        ("nvswitch", Link::NvSwitch),
        ("nvlink", Link::NvLink),
        ("nvlink-bridge", Link::NvLinkBridge),
        ("xgmi", Link::Xgmi),
        ("xe-link", Link::XeLink),
        ("pcie", Link::Pcie),
    ];

    /// The word of offer files.
    pub fn word(self) -> &'static str {
        Link::ALL.iter().find(|(_, link)| *link == self).map_or("", |(word, _)| word)
    }

    /// The technology that `text` names, as spec files and drivers write it ("NVLink 4 x18", "xGMI/Infinity Fabric x7").
    pub fn named(text: &str) -> Option<Link> {
        const NAMES: [(&str, Link); 5] = [
            ("nvswitch", Link::NvSwitch),
            ("nvlink", Link::NvLink),
            ("xgmi", Link::Xgmi),
            ("infinity fabric", Link::Xgmi),
            ("xe link", Link::XeLink),
        ];
        let text = text.to_lowercase();
        NAMES.iter().find(|(name, _)| text.contains(name)).map(|(_, link)| *link)
    }

    /// What the interconnect column of the instance table says beyond doubt.
    pub fn of_interconnect(text: &str) -> Option<Link> {
        let lower = text.to_lowercase();
        match lower.as_str() {
            "pcie only" => Some(Link::Pcie),
            // The GPUs of an NVL72 rack are joined by NVLink switches.
            "nvlink domain (nvl72)" => Some(Link::NvSwitch),
            l if l.contains(" or ") || l.contains("possible") || l.contains("pcie") => None,
            l if l.contains("bridge") => Some(Link::NvLinkBridge),
            l => Link::named(l),
        }
    }

    /// The technology without what joins it.
    fn technology(self) -> Link {
        match self {
            Link::NvSwitch | Link::NvLinkBridge => Link::NvLink,
            other => other,
        }
    }

    /// True if both are the same technology, however it is joined.
    pub fn is_like(self, other: Link) -> bool {
        self.technology() == other.technology()
    }

    /// True if who was sold `self` and has `actual` got it: a switch does all that a link or bridge does, and any link
    /// more than none.
    pub fn is_met_by(self, actual: Link) -> bool {
        self == Link::Pcie
            || self == actual
            || (self.is_like(actual) && (actual == Link::NvSwitch || self == Link::NvLink))
    }
}

/// How an instance is rented.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Market {
    /// By the hour, at will.
    OnDemand,
    /// Until somebody pays more.
    Spot,
    /// For a term.
    Reserved,
    /// From whoever offers.
    Marketplace,
    /// For months at a flat price.
    Subscription,
}

impl Market {
    /// All, with the words of offer files.
    pub const ALL: [(&'static str, Market); 5] = [
        ("on-demand", Market::OnDemand),
        ("spot", Market::Spot),
        ("reserved", Market::Reserved),
        ("marketplace", Market::Marketplace),
        ("subscription", Market::Subscription),
    ];

    /// The word of offer files.
    pub fn word(self) -> &'static str {
        Market::ALL.iter().find(|(_, market)| *market == self).map_or("", |(word, _)| word)
    }
}

/// Kinds of disks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StorageKind {
    /// Local NVMe.
    Nvme,
    /// Local, without moving parts.
    Ssd,
    /// Local, with moving parts.
    Hdd,
    /// Volumes over the network.
    Network,
}

impl StorageKind {
    /// All, with the words of offer files.
    pub const ALL: [(&'static str, StorageKind); 4] = [
        ("nvme", StorageKind::Nvme),
        ("ssd", StorageKind::Ssd),
        ("hdd", StorageKind::Hdd),
        ("network", StorageKind::Network),
    ];

    /// The word of offer files.
    pub fn word(self) -> &'static str {
        StorageKind::ALL.iter().find(|(_, kind)| *kind == self).map_or("", |(word, _)| word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_read_as_tables_and_drivers_write_them() {
        for (text, link) in [
            ("NVSwitch", Some(Link::NvSwitch)),
            ("NVLink domain (NVL72)", Some(Link::NvSwitch)),
            ("NVLink", Some(Link::NvLink)),
            ("NVLink bridge pairs", Some(Link::NvLinkBridge)),
            ("xGMI mesh", Some(Link::Xgmi)),
            ("PCIe only", Some(Link::Pcie)),
            ("single GPU", None),
            ("PCIe, bridge possible", None),
            ("NVLink bridge or PCIe", None),
            ("PCIe only (typical); NVLink only where the offer says SXM", None),
        ] {
            assert_eq!(Link::of_interconnect(text), link, "{text}");
        }
        assert_eq!(Link::named("NVLink 4 x18"), Some(Link::NvLink));
        assert_eq!(Link::named("Xe Link x6"), Some(Link::XeLink));
        assert_eq!(Link::named("PCIe 5"), None);
    }

    #[test]
    fn a_switch_is_more_than_a_link_and_a_link_more_than_none() {
        for (sold, actual, is_met) in [
            (Link::NvLink, Link::NvSwitch, true),
            (Link::NvLink, Link::NvLinkBridge, true),
            (Link::NvLinkBridge, Link::NvSwitch, true),
            (Link::NvSwitch, Link::NvLink, false),
            (Link::NvLinkBridge, Link::NvLink, false),
            (Link::Pcie, Link::Xgmi, true),
            (Link::Xgmi, Link::NvLink, false),
            (Link::NvLink, Link::Pcie, false),
        ] {
            assert_eq!(sold.is_met_by(actual), is_met, "{sold:?} {actual:?}");
        }
    }
}
