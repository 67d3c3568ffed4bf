//! Every finding code with its topic: the words are `finding.TOPIC.*` in the locale files. Codes are stable; a
//! code that is no longer used is never given to another finding.

/// Code and topic, in order of the code.
pub const CODES: &[(&str, &str)] = &[
    ("GA-BRAKE-01", "hardware_slowdown"),
    ("GA-CLOCK-01", "low_clock"),
    ("GA-CLOCK-02", "clock_wrong"),
    ("GA-CRASH-01", "crash"),
    ("GA-DRIFT-01", "drift"),
    ("GA-ECC-01", "memory_errors"),
    ("GA-ECC-02", "remapped_rows"),
    ("GA-ECC-03", "ecc_off"),
    ("GA-EFF-01", "less_per_clock"),
    ("GA-ENGINE-01", "engine_limited"),
    ("GA-ENGINE-01", "engine_without_library"),
    ("GA-FAIL-01", "out_of_memory"),
    ("GA-FAIL-02", "driver"),
    ("GA-FAIL-03", "storage"),
    ("GA-FAIL-04", "not_a_number"),
    ("GA-FAIL-05", "aggressor"),
    ("GA-FAIL-06", "internal"),
    ("GA-HANG-01", "hang"),
    ("GA-HOST-01", "steal"),
    ("GA-HOST-02", "launch_limited"),
    ("GA-HOST-03", "far_cpus"),
    ("GA-ID-01", "other_name"),
    ("GA-ID-02", "disagreement"),
    ("GA-ID-03", "mixed"),
    ("GA-ID-04", "missing_gpu"),
    ("GA-LINK-01", "fewer_lanes"),
    ("GA-LINK-01", "narrow_link"),
    ("GA-LINK-02", "lower_generation"),
    ("GA-LINK-03", "peer_links_down"),
    ("GA-LINK-04", "slow_peer_link"),
    ("GA-LOAD-01", "foreign_process"),
    ("GA-LOAD-02", "unexplained_load"),
    ("GA-LOAD-03", "interrupted"),
    ("GA-LOST-01", "lost"),
    ("GA-MEM-01", "less_memory"),
    ("GA-MEM-02", "memory_below"),
    ("GA-NOISE-01", "unsteady"),
    ("GA-OFFER-01", "fewer_cpus"),
    ("GA-OFFER-02", "less_ram"),
    ("GA-OFFER-03", "less_storage"),
    ("GA-OFFER-04", "other_link"),
    ("GA-OFFER-05", "claimed"),
    ("GA-OWN-01", "implausible"),
    ("GA-PEER-01", "slow_memory"),
    ("GA-PEER-02", "slower_than_peers"),
    ("GA-PEER-03", "two_differ"),
    ("GA-POWER-01", "power_cap"),
    ("GA-REF-01", "no_reference"),
    ("GA-RESULT-01", "wrong"),
    ("GA-RESULT-02", "nan"),
    ("GA-SLICE-01", "slice"),
    ("GA-SLICE-02", "slice_in_use"),
    ("GA-STATE-01", "state_not_reached"),
    ("GA-TELE-01", "no_telemetry"),
    ("GA-THERM-01", "thermal"),
    ("GA-TIME-01", "untested"),
    ("GA-TIME-02", "budget_spent"),
    ("GA-UNIT-01", "fewer_units"),
];

/// The topics of a finding code: one, or several ways to see the same fault. Empty for an unknown code.
pub fn topics(code: &str) -> Vec<&'static str> {
    CODES.iter().filter(|(known, _)| known.eq_ignore_ascii_case(code)).map(|(_, topic)| *topic).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    /// Codes written anywhere in the judge, read from its source.
    fn used(folder: &Path, found: &mut BTreeSet<(String, String)>) {
        for entry in std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()) {
            if entry.is_dir() {
                used(&entry, found);
                continue;
            }
            let text = std::fs::read_to_string(&entry).unwrap();
            for (at, _) in text.match_indices("(\"GA-") {
                let words: Vec<&str> = text[at..].split('"').collect();
                if let [_, code, ", ", topic, ..] = words[..] {
                    found.insert((code.to_owned(), topic.to_owned()));
                }
            }
        }
    }

    #[test]
    fn the_table_holds_every_code_that_a_check_uses_and_no_other() {
        let mut found = BTreeSet::new();
        let checks = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/judge/check");
        used(&checks, &mut found);
        let table: BTreeSet<_> = CODES.iter().map(|(c, t)| ((*c).to_owned(), (*t).to_owned())).collect();
        assert_eq!(table, found);
        let topics: BTreeSet<&str> = CODES.iter().map(|(_, topic)| *topic).collect();
        assert_eq!(topics.len(), CODES.len(), "one code per topic");
    }
}
