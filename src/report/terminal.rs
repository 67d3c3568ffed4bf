//! The result on a terminal: what is not in order first, the verdict last.

use super::locale::{Catalogue, Lang};
use unicode_width::UnicodeWidthStr;

use super::section::{self, finding_groups, requirement_groups};
use super::text::{SHORT, clean, columns, fit, wrap};
use super::view::{Page, Prefix, devices, percent};
use crate::judge::{Assessment, Class, Requirement, Status, Verdict};
use crate::record::Record;

/// Lines of one message at most; texts of a host may be long.
const MOST_LINES: usize = 8;

/// Requirements and findings listed at most.
const MOST: usize = 20;

/// Lines for a terminal `width` columns wide; the last one is the verdict. ANSI colours if `colour`.
pub fn terminal(record: &Record, assessment: &Assessment, lang: Lang, colour: bool, width: usize) -> String {
    let page = Page::new(record, assessment, &[], Catalogue::of(lang));
    let paint = Paint { colour, width: width.max(40) };
    let mut lines = Vec::new();
    let simulated = assessment.simulated || record.run.simulated;
    if simulated {
        lines.extend(paint.lines("33;1", &page.t("simulated.banner")));
    }
    requirements(&page, &paint, &mut lines);
    findings(&page, &paint, &mut lines);
    claims(&page, &paint, &mut lines);
    for reason in page.messages(&assessment.validity_reasons) {
        lines.extend(paint.lines("33", &page.fill("terminal.validity", &[("reason", &reason)])));
    }
    if assessment.not_compared > 0 {
        lines.extend(
            paint.lines("", &page.fill("verdict.not_compared", &[("n", &assessment.not_compared.to_string())])),
        );
    }
    lines.extend(paint.lines("", &page.message(&assessment.headline)));
    lines.push(verdict(&page, &paint, simulated));
    lines.join("\n") + "\n"
}

/// The results among published measurements as a table for a terminal; a sentence where nothing compares.
pub fn normal(record: &Record, assessment: &Assessment, lang: Lang) -> String {
    let page = Page::new(record, assessment, &[], Catalogue::of(lang));
    if assessment.normal.is_empty() {
        return page.t("normal.nothing") + "\n";
    }
    let head = section::normal::COLUMNS.map(|c| page.t(&format!("normal.column.{c}")));
    let rows = assessment.normal.iter().map(|p| {
        let mut row = vec![section::normal::name(&page, p)];
        row.extend(section::normal::cells(p));
        row
    });
    let all: Vec<Vec<String>> = std::iter::once(head.to_vec()).chain(rows).collect();
    let mut lines = Vec::new();
    if assessment.simulated || record.run.simulated {
        lines.push(page.t("simulated.banner"));
    }
    lines.extend(padded(&all));
    lines.extend(assessment.normal.iter().any(|p| !p.same_state).then(|| page.t("normal.other_state")));
    lines.join("\n") + "\n"
}

/// Rows with columns of one width, the first left-aligned, the others right.
fn padded(rows: &[Vec<String>]) -> Vec<String> {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |c: usize| rows.iter().map(|r| r[c].width()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let cell = |c: usize, text: &str| {
        let fill = " ".repeat(widths[c] - text.width());
        if c == 0 { format!("{text}{fill}") } else { format!("{fill}{text}") }
    };
    rows.iter().map(|r| r.iter().enumerate().map(|(c, t)| cell(c, t)).collect::<Vec<_>>().join("  ")).collect()
}

struct Paint {
    colour: bool,
    width: usize,
}

impl Paint {
    /// `text` cut to the width, in the colour of `code` (empty: none).
    fn line(&self, code: &str, text: &str) -> String {
        self.apply(code, &fit(text, self.width))
    }

    /// All of `text` in lines of the width, the further ones indented.
    fn lines(&self, code: &str, text: &str) -> Vec<String> {
        wrap(text, self.width, 4, MOST_LINES).iter().map(|line| self.apply(code, line)).collect()
    }

    fn apply(&self, code: &str, text: &str) -> String {
        if self.colour && !code.is_empty() { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}

fn glyph(status: Status) -> (&'static str, &'static str) {
    match status {
        Status::Pass => ("✔", "32"),
        Status::ConditionalPass => ("◆", "33"),
        Status::ConditionalFail => ("◆", "33;1"),
        Status::Fail => ("✖", "31;1"),
        Status::Inconclusive => ("○", "33"),
        Status::NotTested | Status::NotApplicable => ("–", ""),
    }
}

fn requirements(page: &Page, paint: &Paint, lines: &mut Vec<String>) {
    let groups = requirement_groups(&page.assessment.requirements);
    let open: Vec<_> =
        groups.iter().filter(|g| !matches!(g.worst.status, Status::Pass | Status::NotApplicable)).collect();
    let place = |g: &section::Group| -> String {
        devices(&g.members.iter().flat_map(|m| m.devices.iter().cloned()).collect::<Vec<_>>())
    };
    let shown: Vec<[String; 3]> = open
        .iter()
        .take(MOST)
        .map(|g| [page.status(g.worst.status).word, page.subject(&g.members), place(g)])
        .collect();
    let widest = |i: usize| shown.iter().map(|row| columns(&row[i])).max().unwrap_or(0);
    let widths = [widest(0), widest(1).min(paint.width / 2), widest(2).min(24)];
    for (group, row) in open.iter().zip(&shown) {
        let (mark, code) = glyph(group.worst.status);
        let cells: Vec<String> = row.iter().zip(widths).map(|(text, width)| pad(text, width)).collect();
        let (what, outcome) = (format!("{mark} {}", cells.join("  ")), outcome(page, group.worst));
        if columns(&what) + 2 + columns(&outcome) <= paint.width {
            lines.push(paint.line(code, format!("{what}  {outcome}").trim_end()));
        } else {
            lines.push(paint.line(code, what.trim_end()));
            lines.extend(paint.lines("", &format!("    {outcome}")));
        }
    }
    if open.len() > MOST {
        lines.push(paint.line("", &page.fill("terminal.more", &[("n", &(open.len() - MOST).to_string())])));
    }
}

/// Claims that the vendor's figures contradict.
fn claims(page: &Page, paint: &Paint, lines: &mut Vec<String>) {
    let all = &page.assessment.claims;
    for claim in all.iter().filter(|c| c.class.is_false()).take(MOST) {
        let class = page.words.text(&format!("claim.class.{}", claim.class.name()));
        let text = page.fill("terminal.claim", &[("text", &clean(&claim.text, SHORT)), ("class", &class)]);
        lines.extend(paint.lines("", &text));
        let why = claim.statements.iter().find(|s| s.class.is_false()).map(|s| page.message(&s.message));
        lines.extend(why.iter().flat_map(|why| paint.lines("", &format!("  → {why}"))));
    }
}

/// Text cut or filled to `width` columns.
fn pad(text: &str, width: usize) -> String {
    let text = fit(text, width);
    let missing = width.saturating_sub(columns(&text));
    text + &" ".repeat(missing)
}

/// `204 ± 2.0 GB/s, ≥ 333 GB/s, 39.0 % short`, or the reason.
fn outcome(page: &Page, r: &Requirement) -> String {
    let mut parts = Vec::new();
    let prefix = Prefix::of(r.unit, r.measured.map(|m| m.median).or(r.limit.as_ref().map(|l| l.value)));
    if let Some(m) = r.measured {
        parts.push(format!("{} ± {} {}", prefix.number(m.median), prefix.uncertainty(m.uncertainty), prefix.symbol()));
        parts.extend(r.limit.iter().map(|l| page.limit(r, l, &prefix)));
    }
    let short = r.shortfall().filter(|s| *s > 0.0);
    parts.extend(short.map(|s| page.fill("requirements.short", &[("ratio", &percent(s))])));
    parts.extend(r.reason.iter().map(|m| page.message(m)));
    parts.join(", ")
}

fn findings(page: &Page, paint: &Paint, lines: &mut Vec<String>) {
    for finding in finding_groups(page).into_iter().take(MOST) {
        let text = format!("{} {} {}", finding.code, finding.devices, finding.observed);
        lines.extend(paint.lines("1", &text));
        lines.extend(paint.lines("", &format!("  → {}", finding.ask)));
    }
}

/// `NOT ACCEPTED  3 of 14 gates failed · suite quick · 92.0 s · validity: valid`.
fn verdict(page: &Page, paint: &Paint, simulated: bool) -> String {
    let (code, mark) = match page.assessment.verdict {
        Verdict::Accepted => ("32;1", "✔"),
        Verdict::AcceptedWithReservations => ("33;1", "◆"),
        Verdict::Inconclusive => ("33;1", "○"),
        Verdict::NotAccepted => ("31;1", "✖"),
    };
    let applies = |r: &&Requirement| r.class == Class::Gate && r.status != Status::NotApplicable;
    let gates = || page.assessment.requirements.iter().filter(applies);
    let passed = gates().filter(|r| r.status == Status::Pass).count();
    let counts =
        page.fill("terminal.gates", &[("passed", &passed.to_string()), ("gates", &gates().count().to_string())]);
    let word = page.verdict().word.to_uppercase();
    let word = if simulated { format!("{word} ({})", page.t("simulated.short")) } else { word };
    let rest = [
        counts,
        page.fill("terminal.suite", &[("suite", &clean(&page.record.suite.name, 40))]),
        page.record.run.duration.to_string(),
        page.fill("terminal.validity", &[("reason", &page.validity())]),
    ];
    format!("{}  {}", paint.apply(code, &format!("{mark} {word}")), rest.join(" · "))
}
