//! Money: what the price buys and what a shortfall costs. Left out where the offer states no price.

use serde::Serialize;
use tera::Value;

use super::{Section, view};
use crate::judge::money::{Money, PricedRate, Shortfall, StatedPrice};
use crate::report::text::{SHORT, clean};
use crate::report::view::{Page, Row, Table, percent};

/// The section.
pub const SECTION: Section = Section {
    id: "money",
    template: include_str!("../../../report-templates/section/money.html"),
    listed: true,
    build,
};

#[derive(Serialize)]
struct MoneyView {
    lines: Vec<String>,
    rates: Table,
    shortfall: Vec<String>,
}

fn build(page: &mut Page) -> Option<Value> {
    let money = page.assessment.money.as_ref()?;
    view(&MoneyView {
        lines: money.prices.iter().map(|p| price(page, p)).collect(),
        rates: Table { caption: page.t("money.rates"), columns: columns(page, money), rows: rows(page, money) },
        shortfall: money.shortfall.iter().flat_map(|s| shortfall(page, money, s)).collect(),
    })
}

fn market(page: &Page, price: &StatedPrice) -> String {
    price.market.as_ref().map_or_else(|| page.t("money.price"), |m| clean(m, SHORT))
}

fn price(page: &Page, price: &StatedPrice) -> String {
    let amount = amount(price.per_hour, &price.currency);
    let words = [("market", market(page, price)), ("amount", amount)];
    let line = page.fill("money.per_hour", &words.each_ref().map(|(n, v)| (*n, v.as_str())));
    match &price.source {
        Some(source) => format!("{line} ({})", clean(source, SHORT)),
        None => line,
    }
}

fn columns(page: &Page, money: &Money) -> Vec<String> {
    let own = ["money.what", "money.delivered"].map(|k| page.t(k));
    own.into_iter().chain(money.prices.iter().map(|p| market(page, p))).chain([page.t("money.energy")]).collect()
}

fn rows(page: &Page, money: &Money) -> Vec<Row> {
    money.rates.iter().map(|r| row(page, money, r)).collect()
}

fn row(page: &Page, money: &Money, rate: &PricedRate) -> Row {
    let prices = rate.prices.iter().zip(&money.prices).map(|(value, price)| {
        let words = [("amount", amount(*value, &price.currency)), ("unit", short(rate))];
        page.fill("money.each", &words.each_ref().map(|(n, v)| (*n, v.as_str())))
    });
    // 10^12 joule per operation are picojoule.
    let energy = rate.energy.map_or_else(|| "–".to_owned(), |j| format!("{:.3} pJ", 1e12 * j));
    Row {
        name: format!("{} {}", page.words.name("metric", &rate.metric), clean(&rate.what, SHORT)),
        cells: [rate.delivered.to_string()].into_iter().chain(prices).chain([energy]).collect(),
    }
}

/// "PFLOP/s", "TB/s": the unit of the price.
fn short(rate: &PricedRate) -> String {
    rate.per.to_string().trim_start_matches(|c: char| c.is_ascii_digit() || c == '.' || c == ' ').to_owned()
}

fn shortfall(page: &Page, money: &Money, shortfall: &Shortfall) -> Vec<String> {
    let all = money.prices.iter().zip(&shortfall.equivalent_per_hour).zip(&shortfall.per_month);
    all.map(|((price, equivalent), month)| {
        let words = [
            ("share", percent(shortfall.share)),
            ("market", market(page, price)),
            ("equivalent", amount(*equivalent, &price.currency)),
            ("month", amount(*month, &price.currency)),
        ];
        page.fill("money.shortfall", &words.each_ref().map(|(n, v)| (*n, v.as_str())))
    })
    .collect()
}

/// An amount with as many decimals as its size needs.
fn amount(value: f64, currency: &str) -> String {
    let currency = clean(currency, 3);
    match value {
        v if v >= 1000.0 => format!("{v:.0} {currency}"),
        v if v >= 1.0 => format!("{v:.2} {currency}"),
        v => format!("{v:.4} {currency}"),
    }
}
