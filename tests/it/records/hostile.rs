//! A machine that is out to deceive whoever reads its report.

use gpu_assay::judge::{BasisKind, Estimate, Message};
use gpu_assay::record::{MetricId, Notice, Outcome};
use gpu_assay::unit::Seconds;

use super::draft::{Draft, limit};
use super::gpus::eight_gpus;

/// What a hostile machine would call its parts.
pub const HOSTILE: &str = "</script></style></title>--><svg onload=alert(1)><script>document.title='owned';alert(1)\
    </script><img src=x onerror=\"document.title='owned'\">\u{202e}gnp\u{2066}\u{1b}[2J\u{1b}]0;owned\u{7}\u{0}{{ 7*7 }}{% raw %}'\"&";

/// Every text of the record and the assessment is [`HOSTILE`], some of it ten thousand characters long.
pub fn hostile() -> Draft {
    let mut draft = eight_gpus();
    let text = || HOSTILE.to_owned();
    let long = HOSTILE.repeat(10_000 / HOSTILE.len() + 1);
    let record = &mut draft.record;
    record.id = text();
    record.tool.version = text();
    record.suite.name = text();
    record.run.started_at = long.clone();
    record.run.arguments = vec![text(), long.clone()];
    record.run.neutralised_environment.insert(text(), text());
    let host = &mut record.inventory.host;
    for field in [&mut host.hostname, &mut host.cpu, &mut host.kernel, &mut host.os] {
        *field = long.clone();
    }
    host.cloud = Some(text());
    host.container = Some(text());
    host.attributes.insert(text(), long.clone());
    for device in &mut record.inventory.devices {
        device.name = text();
        device.uuid = Some(text());
        device.driver = Some(long.clone());
        device.attributes.insert(text(), text());
    }
    for disagreement in &mut record.inventory.disagreements {
        disagreement.about = text();
        disagreement.first = (text(), text());
    }
    for case in &mut record.plan.cases {
        if case.benchmark == "launch_latency" {
            case.benchmark = text();
        }
    }
    for result in &mut record.results {
        if let Outcome::Measured(m) = &mut result.outcome {
            m.engine.name = text();
            m.verification.method = text();
            if result.id.0.starts_with("launch") {
                m.series[0].metric = MetricId(text());
                m.series[0].labels.insert(text(), text());
                m.series[0].labels.insert("percentile".to_owned(), text());
                m.series[0].blocks[0].value = f64::NAN;
                m.series[0].blocks[1].value = f64::INFINITY;
            }
        }
    }
    for series in record.telemetry.series.iter_mut().take(1) {
        series.source = text();
        series.sensor = text();
        series.points[0].value = f64::NAN;
        series.points[1].at = Seconds(f64::INFINITY);
    }
    record.notices.push(Notice::NoTelemetry { reason: long.clone() });
    let assessment = &mut draft.assessment;
    assessment.headline = Message::new(HOSTILE).with(HOSTILE, long.as_str());
    assessment.judged_by = text();
    for (i, requirement) in assessment.requirements.iter_mut().enumerate() {
        if i % 40 == 0 {
            requirement.metric = text();
            requirement.labels.insert(text(), long.clone());
            requirement.reason = Some(Message::new("reason.hang").with("text", long.as_str()));
            requirement.limit = Some(limit(f64::NAN, BasisKind::Band, HOSTILE));
            requirement.measured = Some(Estimate {
                median: f64::NAN,
                uncertainty: f64::INFINITY,
                p05: 0.0,
                p95: -1.0,
                blocks: 0,
                effective_blocks: f64::NAN,
                drift: f64::NAN,
            });
        }
    }
    for finding in &mut assessment.findings {
        finding.code = text();
        finding.evidence[0].pointer = long.clone();
        finding.observed = Message::new("finding.crash.observed").with("case", HOSTILE).with("text", HOSTILE);
    }
    draft
}
