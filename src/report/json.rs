//! The assessment as JSON: the same judgement that every other format shows.

use super::ReportError;
use crate::judge::Assessment;

/// `assessment.json`: pretty-printed, with a final newline. Its SHA-256 is what the HTML report prints.
pub fn json(assessment: &Assessment) -> Result<String, ReportError> {
    let mut text = serde_json::to_string_pretty(assessment)?;
    text.push('\n');
    Ok(text)
}
