//! `explain`: what a benchmark, metric, finding, verdict or status means, and how sure the rule is.

use super::args::ExplainArgs;
use super::error::CliError;
use super::output;
use crate::benchmark::{self, Meta};
use crate::exit::Exit;
use crate::judge::{self, CODES};
use crate::record::Better;
use crate::report::{Catalogue, Lang};
use crate::stats::simulate::{Row, Settings, operating_characteristic};

/// Runs `explain`.
pub fn explain(args: &ExplainArgs) -> Result<Exit, CliError> {
    let text = if args.id == "statistics" {
        statistics(args.simulate)
    } else {
        let found = benchmark(&args.id).or_else(|| finding(&args.id, args.lang)).or_else(|| word(&args.id, args.lang));
        found.ok_or_else(|| unknown(&args.id))?
    };
    output::stdout(&text).map(|()| Exit::Accepted)
}

fn unknown(id: &str) -> CliError {
    let benchmarks: Vec<&str> = benchmark::ALL.iter().map(|b| b.meta().id).collect();
    CliError::usage(format_args!("nothing is called \"{id}\"")).help(format_args!(
        "benchmarks: {}; or a metric, a finding code such as {}, a verdict or status, or \"statistics\"",
        benchmarks.join(", "),
        CODES.first().map_or("GA-…", |(code, _)| code)
    ))
}

fn benchmark(id: &str) -> Option<String> {
    let names = |meta: &Meta| meta.id == id || meta.metrics.iter().any(|m| m.id == id);
    let meta = benchmark::ALL.iter().map(|b| b.meta()).find(|m| names(m))?;
    let mut text = format!("{} (method version {})\n\n", meta.title, meta.version);
    for (title, words) in [
        ("What it measures", meta.measures),
        ("Why it matters", meta.why),
        ("Method", meta.method),
        ("Limits", meta.limits),
    ] {
        text.push_str(&format!("{title}\n{}\n\n", wrapped(words)));
    }
    text.push_str("Metrics\n");
    for m in meta.metrics {
        let better = if m.better == Better::Higher { "higher" } else { "lower" };
        text.push_str(&format!("  {} [{}], {better} is better: {}\n", m.id, m.unit.symbol(), m.summary));
    }
    for p in meta.params {
        let words = if p.words.is_empty() { String::new() } else { format!(" ({})", p.words.join(", ")) };
        text.push_str(&format!("  parameter {}{words}: {}\n", p.name, p.summary));
    }
    Some(text)
}

fn finding(code: &str, lang: Lang) -> Option<String> {
    let topics = judge::topics(code);
    let words = Catalogue::of(lang);
    let mut text = format!("{}\n\n", code.to_uppercase());
    for topic in &topics {
        for (part, heading) in [("observed", "finding.observed"), ("why", "finding.why"), ("ask", "finding.ask")] {
            // What a record would fill in stands in angle brackets, as in a manual.
            let said = words.text(&format!("finding.{topic}.{part}")).replace('{', "<").replace('}', ">");
            let said = wrapped(&said);
            text.push_str(&format!("{}\n{said}\n\n", words.text(heading)));
        }
    }
    (!topics.is_empty()).then_some(text)
}

/// Verdicts, statuses and validity: the word and its explanation.
fn word(id: &str, lang: Lang) -> Option<String> {
    let words = Catalogue::of(lang);
    let group =
        ["verdict", "status", "validity"].into_iter().find(|g| words.texts().contains_key(&format!("{g}.{id}")))?;
    let explained = words.texts().get(&format!("explain.{group}.{id}")).map_or("", String::as_str);
    Some(format!("{}\n\n{}\n", words.text(&format!("{group}.{id}")), wrapped(explained)))
}

const RULE: &str = "The value of a requirement is the median y over B blocks spread over the run. Its expanded \
uncertainty is U = t(0.975, B-1) x 1.25 x s / sqrt(B), at least 0.3 % of y; with a lag-1 correlation r above 0.3, B \
becomes B(1-r)/(1+r). Against a limit L (mirrored where lower is better): pass if y - U >= L; conditional pass if \
L <= y < L + U; conditional fail if L - kU/2 <= y < L; fail if y < L - kU/2. k is the Sidak factor of all gates of the \
run, so that a healthy machine fails with a probability of at most 1 % per run. A conditional result becomes \
inconclusive if U/y exceeds the metric's cap. More noise moves a result only towards inconclusive.";

fn statistics(simulate: bool) -> String {
    let mut text = wrapped(RULE);
    text.push('\n');
    if !simulate {
        text.push_str(
            "\n`gpu-assay explain statistics --simulate` prints the error rates of this rule by simulation.\n",
        );
        return text;
    }
    let settings = Settings::default();
    text.push_str(&format!(
        "\n{} simulated runs per line, seed {}. Blocks are normal with this coefficient of variation and lag-1\ncorrelation; the limit is 1. \"covers\" is how often y ± U holds the true value (nominal 95 %).\n\n",
        settings.runs, settings.seed
    ));
    text.push_str("gates blocks    CV   r  true value   fail %   pass %  covers %   U/y %\n");
    for Row { gates, blocks, cv, lag1, truth, fail, pass, coverage, relative, .. } in
        operating_characteristic(&settings)
    {
        text.push_str(&format!(
            "{gates:>5} {blocks:>6} {:>4.1}% {lag1:>3.1} {truth:>11.2} {:>8.2} {:>8.2} {:>9.2} {:>7.2}\n",
            cv * 100.0,
            fail * 100.0,
            pass * 100.0,
            coverage * 100.0,
            relative * 100.0
        ));
    }
    text
}

/// Filled to 96 columns, paragraphs and lists kept.
fn wrapped(text: &str) -> String {
    let mut lines = Vec::new();
    for paragraph in text.lines() {
        let mut line = String::new();
        for word in paragraph.split_whitespace() {
            if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > 96 {
                lines.push(std::mem::take(&mut line));
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        lines.push(line);
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_verdicts_and_statuses_have_words_in_both_languages() {
        for lang in [Lang::En, Lang::ZhCn] {
            for (code, _) in CODES {
                let text = finding(code, lang).unwrap_or_default();
                assert!(!text.contains("finding."), "{code}: a key without words: {text}");
                assert!(!text.contains('{'), "{code}: a raw placeholder: {text}");
            }
            for id in
                ["accepted", "not_accepted", "inconclusive", "conditional_fail", "not_tested", "valid", "unchecked"]
            {
                let text = word(id, lang).unwrap_or_default();
                assert!(text.lines().filter(|l| !l.is_empty()).count() >= 2, "{id} is not explained: {text}");
            }
        }
    }

    #[test]
    fn lines_are_filled() {
        assert_eq!(wrapped("a b\n\nc"), "a b\n\nc");
        assert!(wrapped(&"word ".repeat(100)).lines().all(|l| l.chars().count() <= 96));
    }
}
