//! The built-in suites, with the real benchmarks, on the machine that runs the test and on GPUs of the table.

use gpu_assay::backend::Backend;
use gpu_assay::backend::host::Host;
use gpu_assay::backend::sim::Sim;
use gpu_assay::plan::{PlanOptions, plan};
use gpu_assay::record::{Inventory, Plan};
use gpu_assay::suite::{self, Suite};
use gpu_assay::{benchmark, discover, spec};

fn builtin(name: &str) -> Suite {
    let vocabulary = benchmark::vocabulary(spec::FIGURES.iter().map(|(name, _)| (*name).to_owned()).collect());
    suite::parse(name, suite::builtin(name).unwrap(), &vocabulary).unwrap_or_else(|e| panic!("{e}"))
}

fn found(backends: &[Box<dyn Backend>], names: &[&str]) -> Inventory {
    let options = discover::Options { storage: Some(std::env::temp_dir()), ..discover::Options::default() };
    let mut inventory = discover::discover(backends, &options);
    let names: Vec<String> = names.iter().map(|n| (*n).to_owned()).collect();
    inventory.selected = discover::select(&inventory, &names).unwrap_or_else(|e| panic!("{e}"));
    inventory
}

fn planned(name: &str, inventory: &Inventory) -> Plan {
    let plan = plan(&builtin(name), inventory, &PlanOptions::default()).unwrap_or_else(|e| panic!("{name}: {e}"));
    assert!(plan.estimate <= plan.budget, "{name}: {} of {}", plan.estimate, plan.budget);
    plan
}

/// What is missing for want of time or memory, not of ability.
fn left_out(plan: &Plan) -> Vec<String> {
    plan.not_planned.iter().filter(|n| !n.unsupported).map(|n| format!("{}: {}", n.id, n.reason)).collect()
}

#[test]
fn the_host_of_this_machine_gets_the_whole_suite() {
    let inventory = found(&[Box::new(Host)], &["host"]);
    for name in ["quick", "standard"] {
        let plan = planned(name, &inventory);
        eprintln!("{name}: {} cases, {} of {}", plan.cases.len(), plan.estimate, plan.budget);
        for benchmark in ["gemm", "fma_peak", "memory_bandwidth", "memory_latency", "storage_random", "interference"] {
            assert!(plan.cases.iter().any(|c| c.benchmark == benchmark), "{name}: no {benchmark}");
        }
        assert_eq!(left_out(&plan), [""; 0], "{name}");
    }
}

#[test]
fn simulated_gpus_get_their_gates_within_the_time() {
    for count in [1, 8] {
        let sim = Sim::parse(&format!("{count}xh100-sxm5-80gb")).unwrap_or_else(|e| panic!("{e}"));
        let backends: [Box<dyn Backend>; 2] = [Box::new(Host), Box::new(sim)];
        let inventory = found(&backends, &[]);
        assert_eq!(inventory.selected.len(), count);
        for name in ["quick", "standard"] {
            let plan = planned(name, &inventory);
            eprintln!("{name} on {count}: {}, left out: {:#?}", plan.estimate, left_out(&plan));
            let gates = plan.cases.iter().filter(|c| c.gate && c.benchmark == "gemm").count();
            assert_eq!(gates, 4 * count, "{:?}", plan.not_planned);
            assert!(plan.cases.iter().all(|c| c.id.0.contains("@sim:")));
        }
    }
}
