//! Prices from a catalogue in the shape of SkyPilot's `vms.csv` (github:skypilot-org/skypilot-catalog, README): one line
//! per instance type, region and zone, in US dollars per hour. Nothing is filled in: an empty field is no price.

use serde::Deserialize;

use super::Price;

/// Of one line; the columns that are not asked for are not read.
#[derive(Deserialize)]
struct Line {
    #[serde(rename = "InstanceType")]
    instance: Option<String>,
    #[serde(rename = "Region")]
    region: String,
    #[serde(rename = "AvailabilityZone", default)]
    zone: Option<String>,
    #[serde(rename = "Price")]
    price: Option<f64>,
    #[serde(rename = "SpotPrice", default)]
    spot: Option<f64>,
}

/// Prices of `instance` in `region`, in the order of the catalogue: on demand and, per zone, spot; each once. `source`
/// says where the catalogue is from. Errors: what is wrong with the line, the regions to choose from, or nothing found.
pub fn prices(text: &str, source: &str, instance: &str, region: Option<&str>) -> Result<Vec<Price>, String> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let mut lines = Vec::new();
    for line in reader.deserialize::<Line>() {
        let line = line.map_err(|e| format!("not a catalogue of instance types: {e}"))?;
        let is_price = |p: Option<f64>| p.is_none_or(|p| p.is_finite() && p >= 0.0);
        if !is_price(line.price) || !is_price(line.spot) {
            return Err(format!("{}: a price is not a number of dollars", line.instance.unwrap_or_default()));
        }
        if line.instance.as_deref() == Some(instance) {
            lines.push(line);
        }
    }
    let mut regions: Vec<&str> = lines.iter().map(|l| l.region.as_str()).collect();
    regions.sort_unstable();
    regions.dedup();
    let region = match (region, regions.as_slice()) {
        (_, []) => return Err(format!("no line is about {instance}")),
        (Some(region), _) if !regions.contains(&region) => {
            return Err(format!("{instance} is not sold in {region}, but in {}", regions.join(", ")));
        }
        (Some(region), _) => region.to_owned(),
        (None, [region]) => (*region).to_owned(),
        (None, _) => return Err(format!("{instance} is sold in several regions: {}", regions.join(", "))),
    };
    let prices = of_region(lines.iter().filter(|l| l.region == region), source);
    if prices.is_empty() { Err(format!("the catalogue states no price of {instance} in {region}")) } else { Ok(prices) }
}

fn of_region<'a>(lines: impl Iterator<Item = &'a Line>, source: &str) -> Vec<Price> {
    let mut prices: Vec<Price> = Vec::new();
    for line in lines {
        let spot = match &line.zone {
            Some(zone) => format!("spot, {zone}"),
            None => "spot".to_owned(),
        };
        for (market, price) in [("on demand".to_owned(), line.price), (spot, line.spot)] {
            let Some(per_hour) = price.filter(|p| *p > 0.0) else { continue };
            let price =
                Price { market: Some(market), per_hour, currency: "USD".to_owned(), source: Some(source.to_owned()) };
            if !prices.contains(&price) {
                prices.push(price);
            }
        }
    }
    prices
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Price,SpotPrice,Region,GpuInfo,AvailabilityZone
p5.48xlarge,H100,8.0,192.0,2048.0,98.32,40.5,us-east-1,\"{'Gpus': [{'Name': 'H100', 'Count': 8}]}\",us-east-1a
p5.48xlarge,H100,8.0,192.0,2048.0,98.32,,us-east-1,\"{'Gpus': [{'Name': 'H100', 'Count': 8}]}\",us-east-1b
p5.48xlarge,H100,8.0,192.0,2048.0,110.0,,eu-west-1,,eu-west-1a
m5.large,,,2.0,8.0,,0.01,us-east-1,,us-east-1a
,H100,8.0,,,,,us-east-1,,
";

    fn shown(instance: &str, region: Option<&str>) -> Result<Vec<(String, f64)>, String> {
        let all = prices(TEXT, "vms.csv", instance, region)?;
        assert!(all.iter().all(|p| p.currency == "USD" && p.source.as_deref() == Some("vms.csv")));
        Ok(all.into_iter().map(|p| (p.market.unwrap(), p.per_hour)).collect())
    }

    #[test]
    fn each_price_of_the_region_once_and_none_invented() {
        let on_demand = |v: f64| ("on demand".to_owned(), v);
        let expected = vec![on_demand(98.32), ("spot, us-east-1a".to_owned(), 40.5)];
        assert_eq!(shown("p5.48xlarge", Some("us-east-1")).unwrap(), expected);
        assert_eq!(shown("p5.48xlarge", Some("eu-west-1")).unwrap(), [on_demand(110.0)]);
        assert_eq!(shown("m5.large", None).unwrap(), [("spot, us-east-1a".to_owned(), 0.01)]);
    }

    #[test]
    fn what_is_missing_or_wrong_is_said() {
        assert!(shown("p5.48xlarge", None).unwrap_err().contains("eu-west-1, us-east-1"));
        assert!(shown("p5.48xlarge", Some("mars-1")).unwrap_err().contains("not sold in mars-1"));
        assert!(shown("p6", None).unwrap_err().contains("no line"));
        for (text, what) in [
            ("a,b\n1,2\n", "line"),
            ("InstanceType,Price,Region\nx,much,r\n", "line: 2"),
            ("InstanceType,Price,Region\nx,NaN,r\n", "not a number"),
            ("InstanceType,Price,Region\nx,-1,r\n", "not a number"),
            ("InstanceType,Price,Region\nx,,r\n", "no price"),
        ] {
            let error = prices(text, "f", "x", None).unwrap_err();
            assert!(error.contains(what), "{text:?}: {error}");
        }
    }
}
