//! `spec quality`: how the bands decide on published measurements, each without its own source.

use std::collections::BTreeMap;

use super::super::error::CliError;
use super::super::{inputs, output};
use crate::exit::Exit;
use crate::judge::quality::{Decided, FACTORS, Judged, published};
use crate::spec::{self, Reads};

/// Prints the table, the synthetic degradation and every exception by name.
pub fn quality(json: bool) -> Result<Exit, CliError> {
    let suite = inputs::suite("quick")?;
    let judged = published(spec::evidence(), spec::table(), &suite);
    if json {
        output::stdout_json(&judged)?;
    } else {
        output::stdout(&text(&judged))?;
    }
    Ok(Exit::Accepted)
}

fn text(judged: &[Judged]) -> String {
    let unknown = spec::evidence().published().iter().filter(|p| p.kind == "measurement").count() - judged.len();
    let mut text = format!(
        "Every published measurement of a model in the spec table ({}; {unknown} more are of other models), judged\n\
         with bands rebuilt without its source. The judge does not see the label on the left.\n\n",
        judged.len()
    );
    text.push_str(&confusion(judged));
    text.push('\n');
    text.push_str(&degradation(judged));
    text.push('\n');
    text.push_str(&exceptions(judged));
    text
}

fn confusion(judged: &[Judged]) -> String {
    let mut rows: BTreeMap<&str, BTreeMap<Decided, usize>> = BTreeMap::new();
    for one in judged {
        *rows.entry(&one.truth).or_default().entry(one.decided).or_default() += 1;
    }
    let mut text = format!("{:<24}", "label");
    Decided::ALL.iter().for_each(|d| text.push_str(&format!("{:>16}", d.name())));
    text.push('\n');
    for (truth, counts) in rows {
        text.push_str(&format!("{truth:<24}"));
        Decided::ALL.iter().for_each(|d| text.push_str(&format!("{:>16}", counts.get(d).unwrap_or(&0))));
        text.push('\n');
    }
    text
}

/// Decided on at all: a limit applied, and a shortfall by this method would count.
fn is_comparable(judged: &Judged) -> bool {
    judged.truth.starts_with("healthy")
        && judged.reads != Some(Reads::Low)
        && !matches!(judged.decided, Decided::NotComparable | Decided::NoBand)
}

fn degradation(judged: &[Judged]) -> String {
    let mut text = "Healthy values made slower; found = graded miss or gate fail\n".to_owned();
    let kinds = [
        (Reads::Fair, "fair methods"),
        (Reads::High, "methods that read too good (best of many shapes or sizes: a shortfall starts from above)"),
    ];
    for (reads, name) in kinds {
        let comparable: Vec<&Judged> = judged.iter().filter(|j| is_comparable(j) && j.reads == Some(reads)).collect();
        text.push_str(&format!("  {name}, {} comparable\n", comparable.len()));
        text.push_str(&found(&comparable));
    }
    text
}

fn found(comparable: &[&Judged]) -> String {
    let line = |(i, factor): (usize, &f64)| {
        let count = |wanted: &[Decided]| comparable.iter().filter(|j| wanted.contains(&j.degraded[i])).count();
        let found = count(&[Decided::GradedMiss, Decided::GateFail]);
        let share = 100.0 * found as f64 / comparable.len().max(1) as f64;
        let [refused, open, passed] = [Decided::GateFail, Decided::Open, Decided::Pass].map(|d| count(&[d]));
        format!(
            "    × {factor:<4}  found {found:>4} ({share:5.1} %)   refused {refused:>4}   open {open:>3}   passed {passed:>4}\n"
        )
    };
    FACTORS.iter().enumerate().map(line).collect()
}

fn exceptions(judged: &[Judged]) -> String {
    let refused = judged.iter().filter(|j| j.truth.starts_with("healthy") && j.decided == Decided::GateFail);
    let at = FACTORS.iter().position(|f| *f == 0.8).unwrap_or_default();
    let missed = judged
        .iter()
        .filter(|j| is_comparable(j) && !matches!(j.degraded[at], Decided::GradedMiss | Decided::GateFail));
    let is_ill = |j: &&Judged| ["degraded", "power_limited", "suspect"].iter().any(|l| j.truth.starts_with(l));
    let overlooked = judged.iter().filter(is_ill).filter(|j| j.decided == Decided::Pass);
    let list = |title: &str, rows: Vec<&Judged>| {
        let mut text = format!("{title}: {}\n", rows.len());
        rows.iter().for_each(|j| text.push_str(&line(j)));
        text
    };
    list("Healthy, yet refused", refused.collect())
        + &list("Healthy × 0.8, not found", missed.collect())
        + &list("Degraded, limited or suspect, yet passed", overlooked.collect())
}

fn line(judged: &Judged) -> String {
    let gate = judged.gate.as_ref().map_or_else(String::new, |(value, why)| format!("  gate {value:.4e} ({why})"));
    format!("  {:<6} {:<26} {:<24} {:.4e}{gate}\n", judged.id, judged.gpu, judged.metric, judged.value)
}
