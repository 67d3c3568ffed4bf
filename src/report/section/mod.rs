//! The sections of the report, one file each: a section turns the page's data into a view of ready strings for its
//! template. `None` leaves it out.

mod claims;
mod compute;
mod configuration;
mod domain;
mod evidence;
mod findings;
mod identity;
mod interference;
mod item;
mod ledger;
mod link;
mod memory;
mod method;
mod money;
pub mod normal;
mod not_tested;
mod other;
mod overview;
mod requirements;
mod stability;
mod storage;
mod verdict;

use serde::Serialize;
use tera::Value;

use super::view::Page;

/// One section.
pub struct Section {
    /// Id of its element and of its texts (`section.<id>`); the file name here.
    pub id: &'static str,
    /// Its template; the view is called `s` there.
    pub template: &'static str,
    /// True if it has a heading and is in the table of contents.
    pub listed: bool,
    /// Makes its view.
    pub build: fn(&mut Page) -> Option<Value>,
}

/// All sections, in the order of the report. A test compares this list with the files of this folder.
pub const SECTIONS: &[Section] = &[
    identity::SECTION,
    verdict::SECTION,
    requirements::SECTION,
    money::SECTION,
    claims::SECTION,
    findings::SECTION,
    overview::SECTION,
    normal::SECTION,
    compute::SECTION,
    memory::SECTION,
    link::SECTION,
    storage::SECTION,
    interference::SECTION,
    other::SECTION,
    stability::SECTION,
    item::SECTION,
    configuration::SECTION,
    method::SECTION,
    not_tested::SECTION,
    ledger::SECTION,
    evidence::SECTION,
];

pub use findings::groups as finding_groups;
pub use requirements::{Group, groups as requirement_groups};

fn view(view: &impl Serialize) -> Option<Value> {
    Some(Value::from_serializable(view))
}
