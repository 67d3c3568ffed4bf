//! Words in each language: flat keys in `report-templates/locales/`, filled with typed arguments.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;

use super::text::{LONG, clean};
use crate::judge::{Argument, Message};
use crate::unit::Ratio;

/// A language reports can be written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Lang {
    /// English.
    #[default]
    En,
    /// Chinese, simplified.
    ZhCn,
}

impl Lang {
    /// Every language.
    pub const ALL: [Lang; 2] = [Lang::En, Lang::ZhCn];

    /// BCP 47 tag, as in the `lang` attribute.
    pub fn tag(self) -> &'static str {
        match self {
            Lang::En => "en",
            Lang::ZhCn => "zh-CN",
        }
    }

    fn file(self) -> &'static str {
        match self {
            Lang::En => include_str!("../../report-templates/locales/en.toml"),
            Lang::ZhCn => include_str!("../../report-templates/locales/zh-CN.toml"),
        }
    }
}

impl fmt::Display for Lang {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.tag())
    }
}

impl FromStr for Lang {
    type Err = String;
    /// "en", "zh", "zh-CN", and POSIX locale names such as "zh_CN.UTF-8".
    fn from_str(text: &str) -> Result<Lang, String> {
        let primary = text.split(['-', '_', '.']).next().unwrap_or_default();
        match primary.to_ascii_lowercase().as_str() {
            "en" => Ok(Lang::En),
            "zh" => Ok(Lang::ZhCn),
            _ => Err(format!("no reports in language \"{text}\" (en, zh-CN)")),
        }
    }
}

/// The texts of one language.
#[derive(Debug)]
pub struct Catalogue {
    /// Its language.
    pub lang: Lang,
    texts: BTreeMap<String, String>,
}

impl Catalogue {
    /// The catalogue of `lang`; parsed once.
    pub fn of(lang: Lang) -> &'static Catalogue {
        static EN: OnceLock<Catalogue> = OnceLock::new();
        static ZH: OnceLock<Catalogue> = OnceLock::new();
        let cell = match lang {
            Lang::En => &EN,
            Lang::ZhCn => &ZH,
        };
        cell.get_or_init(|| Catalogue {
            lang,
            // The error itself would print the whole file.
            texts: toml::from_str(lang.file())
                .map_err(|e: toml::de::Error| e.message().to_owned())
                .expect("locale files are part of the program and parse"),
        })
    }

    /// All keys with their texts.
    pub fn texts(&self) -> &BTreeMap<String, String> {
        &self.texts
    }

    /// The text called `key`; an unknown key shows itself.
    pub fn text(&self, key: &str) -> String {
        self.texts.get(key).cloned().unwrap_or_else(|| unknown(key))
    }

    /// The text `group.name`, or `name` itself (cleaned) where nobody has given it words: new metrics, parameters and
    /// domains show under their own name.
    pub fn name(&self, group: &str, name: &str) -> String {
        self.texts.get(&format!("{group}.{name}")).cloned().unwrap_or_else(|| clean(name, LONG))
    }

    /// The text called `key` with `{name}` replaced.
    pub fn fill(&self, key: &str, arguments: &[(&str, &str)]) -> String {
        let find = |name: &str| arguments.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned());
        substitute(&self.text(key), find)
    }

    /// A judged message in words. An unknown id shows itself with its arguments.
    pub fn message(&self, message: &Message) -> String {
        match self.texts.get(&message.id) {
            Some(text) => substitute(text, |name| message.args.get(name).map(|a| self.argument(a))),
            None => {
                let arguments: Vec<String> =
                    message.args.iter().map(|(n, a)| format!(" {}={}", clean(n, 40), self.argument(a))).collect();
                format!("{}{}", unknown(&message.id), arguments.concat())
            }
        }
    }

    fn argument(&self, argument: &Argument) -> String {
        match argument {
            Argument::Text(text) => clean(text, LONG),
            Argument::Quantity(quantity) => quantity.to_string(),
            Argument::Ratio(ratio) => Ratio(*ratio).to_string(),
            Argument::Count(n) => n.to_string(),
            Argument::Message(message) => self.message(message),
        }
    }
}

fn unknown(key: &str) -> String {
    format!("[{}]", clean(key, 80))
}

/// `{name}` replaced by `find(name)`, in one pass: what is put in is never searched again. A name nobody knows stays.
fn substitute(text: &str, find: impl Fn(&str) -> Option<String>) -> String {
    let mut out = String::with_capacity(text.len() + 32);
    let mut rest = text;
    while let Some(start) = rest.find('{') {
        let Some(length) = rest[start..].find('}') else { break };
        let name = &rest[start + 1..start + length];
        out.push_str(&rest[..start]);
        match find(name) {
            Some(value) => out.push_str(&value),
            None => out.push_str(&rest[start..=start + length]),
        }
        rest = &rest[start + length + 1..];
    }
    out.push_str(rest);
    out
}

/// Names in braces in `text`, sorted; two languages must agree on them.
pub fn placeholders(text: &str) -> Vec<String> {
    let mut names: Vec<String> =
        text.split('{').skip(1).filter_map(|part| part.split_once('}')).map(|(name, _)| name.to_owned()).collect();
    names.sort();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unit::{Quantity, Unit};

    #[test]
    fn languages_have_equal_keys_and_placeholders() {
        let (en, zh) = (Catalogue::of(Lang::En), Catalogue::of(Lang::ZhCn));
        let keys = |c: &Catalogue| c.texts.keys().cloned().collect::<Vec<_>>();
        assert_eq!(keys(en), keys(zh));
        for (key, text) in en.texts() {
            assert!(!text.trim().is_empty(), "{key} is empty");
            assert_eq!(placeholders(text), placeholders(&zh.texts[key]), "{key}");
        }
    }

    #[test]
    fn arguments_are_formatted_and_never_searched_again() {
        let rate = Quantity { value: 2.04e11, unit: Unit::BytePerSecond };
        let message = Message::new("no.such.message")
            .with("rate", rate)
            .with("short", Argument::Ratio(0.39))
            .with("text", "{rate}\u{1b}");
        let shown = Catalogue::of(Lang::En).message(&message);
        assert_eq!(shown, "[no.such.message] rate=204 GB/s short=39.0 % text={rate}␛");
        let filled = substitute("{a} and {b} {unknown} {", |n| match n {
            "a" => Some("{b}".to_owned()),
            "b" => Some("2".to_owned()),
            _ => None,
        });
        assert_eq!(filled, "{b} and 2 {unknown} {");
    }

    #[test]
    fn languages_by_name() {
        for (text, lang) in [("en", Lang::En), ("zh", Lang::ZhCn), ("zh-CN", Lang::ZhCn), ("zh_CN.UTF-8", Lang::ZhCn)] {
            assert_eq!(text.parse(), Ok(lang));
        }
        assert!("fr".parse::<Lang>().is_err());
    }
}
