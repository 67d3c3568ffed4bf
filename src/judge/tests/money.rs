//! Prices of what was delivered.

use super::*;
use crate::offer::{Offer, Price};

fn priced(offer: &mut Offer, amounts: &[f64]) {
    let price = |(i, per_hour): (usize, &f64)| Price {
        market: Some(format!("market {i}")),
        per_hour: *per_hour,
        currency: "USD".to_owned(),
        source: None,
    };
    offer.prices = amounts.iter().enumerate().map(price).collect();
}

#[test]
fn the_price_of_a_rate_is_that_of_all_devices_together() {
    let mut offer = offer(2);
    priced(&mut offer, &[7.0, 3.5]);
    let money = judged(&node(2), Some(&offer)).money.expect("a price is stated");
    let gemm = money.rates.iter().find(|r| r.metric == "gemm.throughput").unwrap();
    assert_eq!((gemm.devices, gemm.delivered.value), (2, 2.0 * 700e12 * (gemm.delivered.value / 1400e12)));
    assert!((gemm.delivered.value / 1400e12 - 1.0).abs() < 1e-3);
    // 1.4 PFLOP/s for 7 USD are 5 USD for one.
    assert!((gemm.prices[0] / 5.0 - 1.0).abs() < 1e-3 && (gemm.prices[1] / 2.5 - 1.0).abs() < 1e-3);
    let triad = money.rates.iter().find(|r| r.metric == "memory_bandwidth.rate").unwrap();
    assert!((triad.prices[0] / (7.0 / 6.0) - 1.0).abs() < 1e-3, "6 TB/s for 7 USD");
    assert_eq!((gemm.energy, money.shortfall), (None, None));
}

#[test]
fn nothing_is_priced_that_was_not_delivered() {
    let mut priced_offer = offer(2);
    assert_eq!(judged(&node(2), Some(&priced_offer)).money, None, "no price is invented");
    priced(&mut priced_offer, &[7.0]);
    let mut record = node(2);
    measured(&mut record, 2).verification.verified = Verified::Wrong { detail: "C[0,0]".to_owned() };
    let money = judged(&record, Some(&priced_offer)).money.unwrap();
    assert!(money.rates.iter().all(|r| r.metric != "gemm.throughput"), "one of two GPUs has no speed that counts");
    assert!(money.rates.iter().any(|r| r.metric == "memory_bandwidth.rate"));
}

#[test]
fn a_shortfall_against_a_guarantee_costs_its_share() {
    let mut offer = offer(1);
    priced(&mut offer, &[10.0]);
    let limit = offer.guarantees[0].value.value;
    let mut record = node(1);
    measured(&mut record, 0).series[0].blocks.iter_mut().for_each(|b| b.value = 0.8 * limit);
    let shortfall = judged(&record, Some(&offer)).money.unwrap().shortfall.expect("20 % are missing");
    assert!((shortfall.share - 0.8).abs() < 1e-9);
    assert!((shortfall.equivalent_per_hour[0] - 8.0).abs() < 1e-9);
    assert!((shortfall.per_month[0] - 10.0 * 0.2 * 730.0).abs() < 1e-6);
}

#[test]
fn energy_is_power_while_the_blocks_ran_over_the_rate() {
    let mut offer = offer(1);
    priced(&mut offer, &[10.0]);
    let mut record = node(1);
    for b in &mut measured(&mut record, 0).series[0].blocks {
        b.samples = vec![crate::record::Sample { iterations: 1, elapsed: Seconds(1.0) }];
    }
    // Blocks start at 10 s, 11 s …; before that the device idles at 70 W.
    let mut watts = vec![70.0; 10];
    watts.extend([700.0; 12]);
    add_sensor(&mut record, "sim:0", "power", Unit::Watt, &watts);
    let money = judged(&record, Some(&offer)).money.unwrap();
    let gemm = money.rates.iter().find(|r| r.metric == "gemm.throughput").unwrap();
    assert!((gemm.energy.unwrap() / 1e-12 - 1.0).abs() < 0.01, "700 W for 700 TFLOP/s: {:?}", gemm.energy);
    let triad = money.rates.iter().find(|r| r.metric == "memory_bandwidth.rate").unwrap();
    assert_eq!(triad.energy, None, "its blocks are shorter than what a sensor averages over");
}

#[test]
fn one_short_device_of_four_costs_a_quarter_of_its_shortfall() {
    let mut offer = offer(4);
    priced(&mut offer, &[10.0]);
    let limit = offer.guarantees[0].value.value;
    let mut record = node(4);
    measured(&mut record, 0).series[0].blocks.iter_mut().for_each(|b| b.value = 0.8 * limit);
    // The others deliver more than was promised, which makes up for nothing.
    let shortfall = judged(&record, Some(&offer)).money.unwrap().shortfall.expect("one device is short");
    assert!((shortfall.share - 0.95).abs() < 1e-9, "{}", shortfall.share);
    assert!((shortfall.per_month[0] - 10.0 * 0.05 * 730.0).abs() < 1e-6);
    fail(&mut record, 2, CaseErrorKind::Hang);
    let money = judged(&record, Some(&offer)).money.unwrap();
    assert_eq!(money.shortfall, None, "what the second device delivers is not known");
}
