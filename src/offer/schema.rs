//! The JSON Schema of offer files, for editors and for whoever writes them by program.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde::Deserialize;
use serde_json::Value;

use super::parse::OfferFile;

/// One table or a list of them; only its schema is used.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
#[allow(dead_code)] // Read by hand, see `PricesFile`: the shape is what counts here.
pub(super) enum OneOrSeveral<T> {
    /// One.
    One(T),
    /// Several.
    Several(Vec<T>),
}

/// The schema of `offer.toml`, as the parser reads it. Whatever a schema cannot say (units, metrics of the benchmarks,
/// limits that contradict one another) the parser still refuses.
pub fn schema() -> Schema {
    let mut schema = SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<OfferFile>();
    schema.as_object_mut().into_iter().flat_map(|o| o.values_mut()).for_each(without_null);
    schema
}

/// TOML has no null: what is optional is left out.
fn without_null(value: &mut Value) {
    match value {
        Value::Object(object) => {
            if let Some(Value::Array(types)) = object.get_mut("type") {
                types.retain(|t| t != "null");
                if let [one] = types.as_slice() {
                    let one = one.clone();
                    object.insert("type".to_owned(), one);
                }
            }
            if let Some(Value::Array(any)) = object.get_mut("anyOf") {
                any.retain(|a| a["type"] != "null");
                if let [Value::Object(one)] = any.as_slice() {
                    let one = one.clone();
                    object.remove("anyOf");
                    object.extend(one);
                }
            }
            object.values_mut().for_each(without_null);
        }
        Value::Array(all) => all.iter_mut().for_each(without_null),
        _ => {}
    }
}

/// The words of a closed list.
pub(super) fn words<T>(all: &[(&'static str, T)]) -> Vec<&'static str> {
    all.iter().map(|(word, _)| *word).collect()
}
