//! Every message the judge can emit, with the names of its arguments. The words are in
//! `report-templates/locales/`; a test there checks that each language has each id with these arguments.

/// Message ids and argument names, both in alphabetical order.
pub const MESSAGES: &[(&str, &[&str])] = &[
    ("finding.aggressor.ask", &[]),
    ("finding.aggressor.observed", &["case", "text"]),
    ("finding.aggressor.why", &[]),
    ("finding.budget_spent.ask", &[]),
    ("finding.budget_spent.observed", &["count"]),
    ("finding.budget_spent.why", &[]),
    ("finding.clock_wrong.ask", &[]),
    ("finding.clock_wrong.observed", &["allowed", "case", "difference"]),
    ("finding.clock_wrong.why", &[]),
    ("finding.crash.ask", &[]),
    ("finding.crash.observed", &["case", "text"]),
    ("finding.crash.why", &[]),
    ("finding.disagreement.ask", &[]),
    ("finding.disagreement.observed", &["about", "other", "says"]),
    ("finding.disagreement.why", &[]),
    ("finding.drift.ask", &[]),
    ("finding.drift.observed", &["case", "drift"]),
    ("finding.drift.why", &[]),
    ("finding.driver.ask", &[]),
    ("finding.driver.observed", &["case", "text"]),
    ("finding.driver.why", &[]),
    ("finding.engine_limited.ask", &[]),
    ("finding.engine_limited.observed", &["count", "engine"]),
    ("finding.engine_limited.why", &[]),
    ("finding.engine_without_library.ask", &[]),
    ("finding.engine_without_library.observed", &["count", "engine"]),
    ("finding.engine_without_library.why", &[]),
    ("finding.evidence.case", &["name"]),
    ("finding.evidence.device", &["name"]),
    ("finding.evidence.notice", &["name"]),
    ("finding.evidence.sensor", &["name"]),
    ("finding.fewer_lanes.ask", &[]),
    ("finding.fewer_lanes.observed", &["expected", "lanes"]),
    ("finding.fewer_lanes.why", &[]),
    ("finding.fewer_units.ask", &[]),
    ("finding.fewer_units.observed", &["about", "other", "says"]),
    ("finding.fewer_units.why", &[]),
    ("finding.foreign_process.ask", &[]),
    ("finding.foreign_process.observed", &["name", "share"]),
    ("finding.foreign_process.why", &[]),
    ("finding.hang.ask", &[]),
    ("finding.hang.observed", &["case", "text"]),
    ("finding.hang.why", &[]),
    ("finding.implausible.ask", &[]),
    ("finding.implausible.observed", &["case", "ceiling", "ratio"]),
    ("finding.implausible.why", &[]),
    ("finding.internal.ask", &[]),
    ("finding.internal.observed", &["case", "text"]),
    ("finding.internal.why", &[]),
    ("finding.interrupted.ask", &[]),
    ("finding.interrupted.observed", &["cases", "deepest", "of"]),
    ("finding.interrupted.why", &[]),
    ("finding.less_memory.ask", &[]),
    ("finding.less_memory.observed", &["about", "other", "says"]),
    ("finding.less_memory.why", &[]),
    ("finding.lost.ask", &[]),
    ("finding.lost.observed", &["case", "text"]),
    ("finding.lost.why", &[]),
    ("finding.low_clock.ask", &[]),
    ("finding.low_clock.observed", &["held", "highest", "share"]),
    ("finding.low_clock.why", &[]),
    ("finding.missing_gpu.ask", &[]),
    ("finding.missing_gpu.observed", &["bus", "found"]),
    ("finding.missing_gpu.why", &[]),
    ("finding.mixed.ask", &[]),
    ("finding.mixed.observed", &["kinds"]),
    ("finding.mixed.why", &[]),
    ("finding.nan.ask", &[]),
    ("finding.nan.observed", &["case", "detail"]),
    ("finding.nan.why", &[]),
    ("finding.narrow_link.ask", &[]),
    ("finding.narrow_link.observed", &["rate", "raw", "share"]),
    ("finding.narrow_link.why", &[]),
    ("finding.no_reference.ask", &[]),
    ("finding.no_reference.observed", &["model"]),
    ("finding.no_reference.why", &[]),
    ("finding.no_telemetry.ask", &[]),
    ("finding.no_telemetry.observed", &["reason"]),
    ("finding.no_telemetry.why", &[]),
    ("finding.not_a_number.ask", &[]),
    ("finding.not_a_number.observed", &["case", "text"]),
    ("finding.not_a_number.why", &[]),
    ("finding.other_name.ask", &[]),
    ("finding.other_name.observed", &["about", "other", "says"]),
    ("finding.other_name.why", &[]),
    ("finding.out_of_memory.ask", &[]),
    ("finding.out_of_memory.observed", &["case", "text"]),
    ("finding.out_of_memory.why", &[]),
    ("finding.power_cap.ask", &[]),
    ("finding.power_cap.observed", &["held", "highest", "limit", "power", "share"]),
    ("finding.power_cap.why", &[]),
    ("finding.ruled_out.clock", &["difference"]),
    ("finding.ruled_out.clock_held", &["share"]),
    ("finding.ruled_out.foreign", &[]),
    ("finding.ruled_out.result", &["checks"]),
    ("finding.slow_memory.ask", &[]),
    ("finding.slow_memory.observed", &["difference", "limit", "measured", "metric", "peers"]),
    ("finding.slow_memory.why", &[]),
    ("finding.slower_than_peers.ask", &[]),
    ("finding.slower_than_peers.observed", &["difference", "limit", "measured", "metric", "peers"]),
    ("finding.slower_than_peers.why", &[]),
    ("finding.state_not_reached.ask", &[]),
    ("finding.state_not_reached.observed", &["count"]),
    ("finding.state_not_reached.why", &[]),
    ("finding.steal.ask", &[]),
    ("finding.steal.observed", &["share"]),
    ("finding.steal.why", &[]),
    ("finding.storage.ask", &[]),
    ("finding.storage.observed", &["case", "text"]),
    ("finding.storage.why", &[]),
    ("finding.thermal.ask", &[]),
    ("finding.thermal.observed", &["held", "highest", "share", "temperature"]),
    ("finding.thermal.why", &[]),
    ("finding.two_differ.ask", &[]),
    ("finding.two_differ.observed", &["difference", "metric"]),
    ("finding.two_differ.why", &[]),
    ("finding.unexplained_load.ask", &[]),
    ("finding.unexplained_load.observed", &["used"]),
    ("finding.unexplained_load.why", &[]),
    ("finding.unsteady.ask", &[]),
    ("finding.unsteady.observed", &["case", "uncertainty"]),
    ("finding.unsteady.why", &[]),
    ("finding.untested.ask", &[]),
    ("finding.untested.observed", &["count", "reason"]),
    ("finding.untested.why", &[]),
    ("finding.wrong.ask", &[]),
    ("finding.wrong.observed", &["case", "detail"]),
    ("finding.wrong.why", &[]),
    ("judge.headline.accepted", &["gates"]),
    ("judge.headline.accepted_not_compared", &["count", "gates"]),
    ("judge.headline.interrupted", &[]),
    ("judge.headline.invalid", &["reason"]),
    ("judge.headline.not_accepted", &["count", "gates", "what", "where"]),
    ("judge.headline.not_accepted_invalid", &["count", "gates", "what", "where"]),
    ("judge.headline.not_accepted_plain", &[]),
    ("judge.headline.not_accepted_short", &["count", "gates", "short", "what", "where"]),
    ("judge.headline.nothing", &[]),
    ("judge.headline.open", &["count", "gates", "what", "where"]),
    ("judge.headline.open_plain", &[]),
    ("judge.headline.reservations", &["count", "gates", "what", "where"]),
    ("judge.invalid.changed", &["after", "before", "device"]),
    ("judge.invalid.clock", &["difference"]),
    ("judge.invalid.foreign", &["device", "name", "share"]),
    ("judge.invalid.implausible", &["case", "ratio"]),
    ("judge.invalid_short.changed", &[]),
    ("judge.invalid_short.clock", &[]),
    ("judge.invalid_short.foreign", &[]),
    ("judge.invalid_short.implausible", &[]),
    ("judge.unchecked.clock", &[]),
    ("judge.unchecked.telemetry", &[]),
    ("reason.absent", &[]),
    ("reason.aggressor", &["text"]),
    ("reason.changed", &[]),
    ("reason.clock", &[]),
    ("reason.contradiction", &["about", "other", "says"]),
    ("reason.count", &["found", "sold"]),
    ("reason.crash", &["text"]),
    ("reason.device_lost", &["text"]),
    ("reason.drifting", &["cap", "drift"]),
    ("reason.driver", &["text"]),
    ("reason.engine_high", &["engine"]),
    ("reason.engine_low", &["engine"]),
    ("reason.foreign_load", &[]),
    ("reason.invalid_run", &[]),
    ("reason.other_engine", &["count"]),
    ("reason.package_or_device", &["found", "sold"]),
    ("reason.too_few_rounds", &["needed", "rounds"]),
    ("reason.bus_not_observable", &["found", "sold"]),
    ("reason.gpu_without_driver", &["bus", "found"]),
    ("reason.hang", &["text"]),
    ("reason.implausible", &[]),
    ("reason.internal", &["text"]),
    ("reason.memory", &["found", "sold"]),
    ("reason.mixed", &[]),
    ("reason.model_not_in_table", &[]),
    ("reason.model_unclear", &["found", "sold"]),
    ("reason.model_unknown", &["found", "sold"]),
    ("reason.near_above", &[]),
    ("reason.near_below", &[]),
    ("reason.no_case", &[]),
    ("reason.no_device", &[]),
    ("reason.no_evidence", &[]),
    ("reason.no_gpu", &[]),
    ("reason.no_limit", &[]),
    ("reason.no_number", &[]),
    ("reason.no_reference", &[]),
    ("reason.no_series", &[]),
    ("reason.not_a_number", &["text"]),
    ("reason.not_all_tested", &["sold", "tested"]),
    ("reason.nothing_to_verify", &["text"]),
    ("reason.other_model", &["found", "sold"]),
    ("reason.out_of_memory", &["text"]),
    ("reason.sharing", &["used"]),
    ("reason.sharing_not_observable", &[]),
    ("reason.skipped", &["text"]),
    ("reason.steal", &["share"]),
    ("reason.storage", &["text"]),
    ("reason.too_few_blocks", &["blocks"]),
    ("reason.unsteady", &["cap", "uncertainty"]),
    ("reason.unsupported", &["text"]),
    ("reason.unsupported_but_specified", &["text", "type"]),
    ("reason.unverified", &[]),
    ("reason.void", &[]),
    ("share.bandwidth", &[]),
    ("share.figure", &["figure", "model"]),
    ("share.fma_peak", &[]),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn texts(language: &str) -> BTreeMap<String, String> {
        let path = format!("{}/report-templates/locales/{language}.toml", env!("CARGO_MANIFEST_DIR"));
        toml::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
    }

    #[test]
    fn every_message_has_words_with_its_arguments_in_both_languages() {
        for language in ["en", "zh-CN"] {
            let texts = texts(language);
            for (id, args) in MESSAGES {
                let text = texts.get(*id).unwrap_or_else(|| panic!("{language}: {id}"));
                let mut used: Vec<&str> = text.split('{').skip(1).filter_map(|p| Some(p.split_once('}')?.0)).collect();
                used.sort_unstable();
                used.dedup();
                assert_eq!(used, *args, "{language}: {id}");
            }
        }
    }

    #[test]
    fn headlines_are_at_most_25_words() {
        for (id, text) in texts("en").iter().filter(|(id, _)| id.starts_with("judge.headline.")) {
            // A metric with its parameters is up to four words, a short reason up to twelve.
            let filled = text.replace("{what}", "a b c d").replace("{reason}", "a b c d e f g h i j k l");
            assert!(filled.split_whitespace().count() <= 25, "{id}");
        }
    }

    #[test]
    fn words_are_neutral() {
        for (language, words) in
            [("en", &["fake", "fraud", "cheat", "oversold"][..]), ("zh-CN", &["虚标", "造假", "欺诈", "缩水"])]
        {
            for (id, text) in texts(language).iter().filter(|(id, _)| MESSAGES.iter().any(|(m, _)| m == id)) {
                assert!(words.iter().all(|w| !text.to_lowercase().contains(w)), "{language}: {id}");
            }
        }
    }
}
