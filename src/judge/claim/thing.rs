//! What a claim says is there: so many GPUs of a model with so much memory. Only a plain statement counts, one that holds
//! nothing but model, number, size and words that join them: a text that compares ("faster than an A100", "媲美 A100"),
//! lists what else could be had, or speaks of anything else says nothing about what was sold, and a healthy machine is
//! never refused for it.

use super::{CheckedStatement, Class, read};
use crate::judge::Message;
use crate::offer::Offer;
use crate::spec::{GpuSpec, SpecTable};
use crate::unit::{Bytes, Quantity, Unit};

/// What a text says is there.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Thing<'t> {
    /// The name as written, in the words of a table's names; empty where none is named.
    pub name: String,
    /// The models that the name without its size fits; empty where none is named.
    pub models: Vec<&'t GpuSpec>,
    /// How many.
    pub count: Option<u32>,
    /// Memory of each.
    pub size: Option<Bytes>,
}

/// Words that join model, number and size without saying anything else.
const PLAIN: [&str; 66] = [
    "nvidia",
    "amd",
    "intel",
    "geforce",
    "tesla",
    "quadro",
    "instinct",
    "radeon",
    "gpu",
    "gpus",
    "card",
    "cards",
    "accelerator",
    "accelerators",
    "graphics",
    "tensor",
    "core",
    "with",
    "of",
    "each",
    "per",
    "the",
    "a",
    "an",
    "in",
    "total",
    "instance",
    "node",
    "server",
    "machine",
    "has",
    "have",
    "includes",
    "including",
    "contains",
    "comes",
    "provides",
    "equipped",
    "powered",
    "by",
    "our",
    "this",
    "dedicated",
    "physical",
    "full",
    "whole",
    "genuine",
    "real",
    "original",
    "memory",
    "vram",
    "ecc",
    "sxm",
    "sxm2",
    "sxm3",
    "sxm4",
    "sxm5",
    "sxm6",
    "pcie",
    "nvl",
    "oam",
    "model",
    "unit",
    "units",
    "x",
    "type",
];

/// The same in Chinese, the longest first where one begins with another.
const PLAIN_CHINESE: [&str; 40] = [
    "英伟达",
    "服务器",
    "加速卡",
    "算力卡",
    "计算卡",
    "图形处理器",
    "配备",
    "搭载",
    "内置",
    "显卡",
    "显存",
    "独享",
    "独占",
    "物理",
    "整机",
    "整卡",
    "单机",
    "单卡",
    "节点",
    "实例",
    "型号",
    "规格",
    "配置",
    "每",
    "块",
    "张",
    "卡",
    "个",
    "片",
    "颗",
    "台",
    "共",
    "含",
    "带",
    "为",
    "的",
    "各",
    "机",
    "全新",
    "超威",
];

/// Numbers as words.
const NUMBERS: [(&str, u32); 20] = [
    ("one", 1),
    ("single", 1),
    ("two", 2),
    ("dual", 2),
    ("four", 4),
    ("quad", 4),
    ("six", 6),
    ("eight", 8),
    ("ten", 10),
    ("sixteen", 16),
    ("十六", 16),
    ("一", 1),
    ("单", 1),
    ("两", 2),
    ("双", 2),
    ("二", 2),
    ("四", 4),
    ("六", 6),
    ("八", 8),
    ("十", 10),
];

/// One piece of a text.
#[derive(Debug, Clone, PartialEq)]
enum Token {
    /// A word of a model's name, or one that says nothing.
    Word(String),
    /// A number of things.
    Number(u32),
    /// A size.
    Size(Bytes),
    /// Anything else: the text says more than what is there.
    Other,
}

/// What `text` says is there; `None` where it says nothing of the kind, or more than that.
pub fn thing<'t>(text: &str, table: &'t SpecTable) -> Option<Thing<'t>> {
    let plain = read::normalized(text);
    let mut whole: Option<Thing<'t>> = None;
    for part in read::parts(&plain) {
        match of_part(&part, table) {
            Part::Elsewhere => {}
            Part::Unclear => return None,
            Part::Thing(own) => whole = Some(joined(whole.unwrap_or_default(), own)?),
        }
    }
    whole.filter(|t| !t.models.is_empty() || t.count.is_some() || t.size.is_some())
}

/// What a part of a text says.
enum Part<'t> {
    /// What is there.
    Thing(Thing<'t>),
    /// Nothing about a model.
    Elsewhere,
    /// Something about a model beside what is there.
    Unclear,
}

/// Two parts of one text, unless they speak of different things.
fn joined<'t>(a: Thing<'t>, b: Thing<'t>) -> Option<Thing<'t>> {
    fn one<T: PartialEq>(a: Option<T>, b: Option<T>) -> Option<Option<T>> {
        match (a, b) {
            (Some(a), Some(b)) if a != b => None,
            (a, b) => Some(a.or(b)),
        }
    }
    let models = match (a.models.is_empty(), b.models.is_empty()) {
        (false, false) => a.models.into_iter().filter(|m| b.models.iter().any(|o| o.id == m.id)).collect(),
        (true, _) => b.models,
        (false, true) => a.models,
    };
    let name = if a.name.is_empty() { b.name } else { a.name };
    Some(Thing { name, models, count: one(a.count, b.count)?, size: one(a.size, b.size)? })
}

/// A plain statement is short; a longer part says more than what is there.
const MOST_TOKENS: usize = 40;

fn of_part<'t>(part: &str, table: &'t SpecTable) -> Part<'t> {
    let tokens = tokens(part);
    if tokens.len() > MOST_TOKENS {
        return Part::Unclear;
    }
    let Some((found, models)) = named(&tokens, table) else {
        return without_model(&tokens);
    };
    let (before, after) = (&tokens[..found.start], &tokens[found.end..]);
    let rest = || before.iter().chain(after);
    let is_plain = |t: &Token| match t {
        Token::Word(word) => is_filler(word),
        Token::Number(_) | Token::Size(_) => true,
        Token::Other => false,
    };
    // Two names, or words that say more.
    if !rest().all(is_plain) || named(before, table).is_some() || named(after, table).is_some() {
        return Part::Unclear;
    }
    let numbers: Vec<u32> = rest().filter_map(|t| if let Token::Number(n) = t { Some(*n) } else { None }).collect();
    let sizes: Vec<Bytes> = rest().filter_map(|t| if let Token::Size(s) = t { Some(*s) } else { None }).collect();
    // The size may be a word of the name. It is compared as a size, not as a model: more than was claimed is fine.
    let name = &tokens[found];
    let of_name = name.iter().find_map(|t| if let Token::Size(s) = t { Some(*s) } else { None });
    let without = name.iter().filter(|t| !matches!(t, Token::Size(_))).filter_map(word_of).collect::<Vec<_>>();
    let wider = table.fitting(&without.join(" "));
    let models = if wider.is_empty() { models } else { wider };
    match (numbers.as_slice(), sizes.as_slice()) {
        ([] | [_], [] | [_]) => {
            let name = name.iter().filter_map(word_of).collect::<Vec<_>>().join(" ").to_uppercase();
            let size = of_name.or(sizes.first().copied());
            Part::Thing(Thing { name, models, count: numbers.first().copied(), size })
        }
        _ => Part::Unclear,
    }
}

/// A number of GPUs, or a size that is plainly that of GPU memory, without a model.
fn without_model<'t>(tokens: &[Token]) -> Part<'t> {
    let mut thing = Thing::default();
    let (mut names_gpus, mut names_memory, mut is_all) = (false, false, false);
    for token in tokens {
        match token {
            Token::Word(word) => {
                names_gpus |= ["gpu", "gpus", "显卡", "卡", "加速卡"].contains(&word.as_str());
                names_memory |= ["vram", "显存"].contains(&word.as_str());
                is_all |= ["total", "整机", "共"].contains(&word.as_str());
                if !is_filler(word) {
                    return Part::Elsewhere;
                }
            }
            Token::Number(n) if thing.count.is_none() => thing.count = Some(*n),
            Token::Size(s) if thing.size.is_none() => thing.size = Some(*s),
            _ => return Part::Elsewhere,
        }
    }
    // "640 GB VRAM in total" is of all together; whether "8 cards 640 GB" is does not show.
    let is_each = names_memory && !is_all && thing.count.is_none();
    thing.size = thing.size.filter(|_| is_each);
    thing.count = thing.count.filter(|_| names_gpus);
    match thing.count.is_some() || thing.size.is_some() {
        true => Part::Thing(thing),
        false => Part::Elsewhere,
    }
}

fn is_filler(word: &str) -> bool {
    let is_memory_type = (word.starts_with("hbm") || word.starts_with("gddr")) && word.len() <= 6;
    PLAIN.contains(&word) || PLAIN_CHINESE.contains(&word) || is_memory_type
}

/// The longest run of words that names models of the table, with a designation in it: a word of letters and digits, or the
/// digits that follow "RTX".
fn named<'t>(tokens: &[Token], table: &'t SpecTable) -> Option<(std::ops::Range<usize>, Vec<&'t GpuSpec>)> {
    const LONGEST: usize = 9;
    for length in (1..=LONGEST.min(tokens.len())).rev() {
        for start in 0..=tokens.len() - length {
            let run = &tokens[start..start + length];
            let Some(text) = run.iter().map(word_of).collect::<Option<Vec<String>>>() else { continue };
            if !is_designation(&text) || run.first().is_some_and(is_idle) || run.last().is_some_and(is_idle) {
                continue;
            }
            let models = table.fitting(&text.join(" "));
            if !models.is_empty() {
                return Some((start..start + length, models));
            }
        }
    }
    None
}

/// Words that a name neither begins nor ends with.
fn is_idle(token: &Token) -> bool {
    matches!(token, Token::Word(w) if ["gpu", "gpus", "card", "cards", "x", "a", "the", "of", "with"].contains(&w.as_str()))
}

fn word_of(token: &Token) -> Option<String> {
    match token {
        Token::Word(word) => word.is_ascii().then(|| word.clone()),
        Token::Size(size) => Some(format!("{}gb", size.0 / 1e9)),
        // The number of a GeForce or Quadro.
        Token::Number(n) => (*n >= 100).then(|| n.to_string()),
        Token::Other => None,
    }
}

fn is_designation(words: &[String]) -> bool {
    let has = |w: &str, wanted: fn(char) -> bool| w.chars().any(wanted);
    let is_type =
        |w: &String| w.starts_with("hbm") || w.starts_with("gddr") || w.starts_with("sxm") || w.ends_with("gb");
    let mixed = |w: &String| has(w, |c| c.is_ascii_digit()) && has(w, |c| c.is_ascii_alphabetic()) && !is_type(w);
    let series = |w: &String| ["rtx", "gtx", "rx", "max", "flex", "arc", "gaudi"].contains(&w.as_str());
    words.iter().any(mixed)
        || words.windows(2).any(|w| series(&w[0]) && w[1].chars().all(|c| c.is_ascii_digit()))
        || words.windows(3).any(|w| series(&w[0]) && w[2].chars().all(|c| c.is_ascii_digit()))
}

// ---- tokens ------------------------------------------------------------------------------------

/// Marks that only join or enclose; any other ("/", ">", "≥", "+", "%") says more.
const MARKS: &str = " \t-,.:*()[]{}<>\"'_（）【】「」·";

fn tokens(part: &str) -> Vec<Token> {
    let lower = part.to_lowercase();
    let mut rest = lower.as_str();
    let mut tokens: Vec<Token> = Vec::new();
    while let Some(c) = rest.chars().next() {
        if c.is_ascii_alphanumeric() {
            let is_of_word = |(i, c): (usize, char)| {
                c.is_ascii_alphanumeric()
                    || c == '.'
                        && rest[..i].ends_with(|c: char| c.is_ascii_digit())
                        && rest[i + 1..].starts_with(|c: char| c.is_ascii_digit())
            };
            let end = rest.char_indices().find(|&at| !is_of_word(at)).map_or(rest.len(), |(i, _)| i);
            word(&rest[..end], &mut tokens);
            rest = &rest[end..];
        } else if MARKS.contains(c) && !matches!(c, '<' | '>') {
            rest = &rest[c.len_utf8()..];
        } else {
            let known = PLAIN_CHINESE.iter().filter(|w| rest.starts_with(**w)).max_by_key(|w| w.len());
            let number =
                NUMBERS.iter().filter(|(w, _)| !w.is_ascii() && rest.starts_with(w)).max_by_key(|(w, _)| w.len());
            let (token, length) = match (known, number) {
                (Some(w), Some((n, _))) if w.len() > n.len() => (Token::Word((*w).to_owned()), w.len()),
                (_, Some((n, value))) => (Token::Number(*value), n.len()),
                (Some(w), None) => (Token::Word((*w).to_owned()), w.len()),
                (None, None) => (Token::Other, c.len_utf8()),
            };
            tokens.push(token);
            rest = &rest[length..];
        }
    }
    tokens
}

/// The tokens of one run of letters and digits: "8xa100", "80gb", "h100".
fn word(text: &str, tokens: &mut Vec<Token>) {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').len();
    let (number, unit) = text.split_at(digits);
    if let Some((_, n)) = NUMBERS.iter().find(|(w, _)| *w == text) {
        return tokens.push(Token::Number(*n));
    }
    // "80 GB": the unit belongs to the number before it.
    if let (true, Some(scale), Some(Token::Number(n))) = (number.is_empty(), scale(unit), tokens.last()) {
        let size = Bytes(f64::from(*n) * scale);
        tokens.pop();
        return tokens.push(Token::Size(size));
    }
    if number.is_empty() {
        // "a100x8"
        if let Some((name, count)) = text.rsplit_once('x')
            && name.ends_with(|c: char| c.is_ascii_digit())
            && (1..=2).contains(&count.len())
            && let Ok(count) = count.parse()
        {
            tokens.push(Token::Word(name.to_owned()));
            return tokens.push(Token::Number(count));
        }
        // "x8", but "PCIe x16" counts lanes.
        let count = text.strip_prefix('x').filter(|t| t.len() <= 2).and_then(|t| t.parse().ok());
        let is_of_link = matches!(tokens.last(), Some(Token::Word(w)) if w == "pcie");
        return tokens.push(match count {
            Some(_) if is_of_link => Token::Other,
            Some(count) => Token::Number(count),
            None => Token::Word(text.to_owned()),
        });
    }
    match (number.parse::<u32>(), number.parse::<f64>(), scale(unit)) {
        (Ok(n), _, _) if unit.is_empty() || unit == "x" => tokens.push(Token::Number(n)),
        (_, Ok(n), Some(scale)) => tokens.push(Token::Size(Bytes(n * scale))),
        (Ok(n), _, _) if n <= 1024 && unit.len() > 1 && unit.starts_with('x') => {
            tokens.push(Token::Number(n));
            word(&unit[1..], tokens);
        }
        // "4090d", "3g"
        (Ok(_), _, _) => tokens.push(Token::Word(text.to_owned())),
        _ => tokens.push(Token::Other),
    }
}

/// Bytes of a unit of GPU memory; a size in GiB and the same number of GB are one size in a name.
fn scale(unit: &str) -> Option<f64> {
    match unit {
        "gb" | "g" | "gib" => Some(1e9),
        "tb" | "tib" => Some(1e12),
        _ => None,
    }
}

// ---- against the offer -------------------------------------------------------------------------

/// What the text says is there, against what the offer's own tables say.
pub(super) fn statements(text: &str, offer: &Offer, sold: &[&GpuSpec], table: &SpecTable) -> Vec<CheckedStatement> {
    let Some(thing) = thing(text, table) else { return Vec::new() };
    let count = |n: u32| Quantity { value: f64::from(n), unit: Unit::Count };
    let statement = |value: Quantity, holds: bool, claimed: String, stated: String| {
        let (class, id) = match holds {
            true => (Class::True, "claim.as_offered"),
            false => (Class::Contradicted, "claim.other_than_offered"),
        };
        let message = Message::new(id).with("claimed", claimed).with("stated", stated);
        CheckedStatement { value, class, message }
    };
    let mut all = Vec::new();
    if let (false, Some(model)) = (thing.models.is_empty() || sold.is_empty(), &offer.model) {
        let holds = thing.models.iter().any(|m| sold.iter().any(|s| s.id == m.id));
        all.push(statement(count(thing.count.unwrap_or(1)), holds, thing.name.clone(), model.clone()));
    }
    if let Some((claimed, stated)) = thing.count.zip(offer.count) {
        all.push(statement(count(claimed), claimed <= stated, format!("{claimed} GPUs"), format!("{stated} GPUs")));
    }
    if let Some((claimed, stated)) = thing.size.zip(offer.memory) {
        let shown = |b: Bytes| format!("{} GB", (b.0 / 1e9).round());
        // Decimal and binary units of one number are one size.
        let holds = claimed.0 <= 1.01 * stated.0;
        all.push(statement(Quantity { value: claimed.0, unit: Unit::Byte }, holds, shown(claimed), shown(stated)));
    }
    all
}
