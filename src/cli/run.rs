//! `run`: discover, plan, measure, judge, report. Everything that can be refused is refused before measuring.

use std::path::{Path, PathBuf};
use std::time::Instant;

use super::args::RunArgs;
use super::error::CliError;
use super::progress::Progress;
use super::{devices, inputs, judge, output, report};
use crate::discover::{self, SelectError};
use crate::event::{Event, Observer, Phase};
use crate::exit::Exit;
use crate::judge::Assessment;
use crate::measure::{self, Children, MeasureError};
use crate::offer::Offer;
use crate::plan::{self, PlanOptions};
use crate::record::{
    BackendId, DeviceKind, FORMAT, HOST_SIMULATED, Inventory, Ledger, Plan, Record, Run, RunEnd, Telemetry, Tool,
};
use crate::suite::Suite;
use crate::unit::Seconds;
use crate::{benchmark, spec};

/// Runs `run`.
pub fn run(args: RunArgs) -> Result<Exit, CliError> {
    let begin = Instant::now();
    let mut progress = Progress::new(args.print.quiet);
    if let Some(folder) = &args.resume {
        return resume(folder, &args, &mut progress);
    }
    let suite = inputs::suite(&args.suite)?;
    let offer = match &args.instance {
        Some(instance) => Some(inputs::parse_offer(instance, &super::offer::of_instance(instance)?)?),
        None => args.offer.as_deref().map(inputs::offer).transpose()?,
    };
    if !args.storage_dir.is_dir() {
        return Err(CliError::usage(format_args!("{}: not a folder", args.storage_dir.display()))
            .help("--storage-dir names the folder whose file system is measured"));
    }
    if args.storage_dir != Path::new(".") {
        output::probe_folder(&args.storage_dir)?;
    }
    progress.on(&Event::Phase { phase: Phase::Discover, planned: None });
    let inventory =
        select(&args, devices::inventory(args.simulate.as_deref(), &args.storage_dir)?, &suite, offer.as_ref())?;
    let names = inventory.selected.iter().filter_map(|id| inventory.device(id)).map(|d| (d.id.clone(), d.name.clone()));
    progress.on(&Event::Selected { devices: names.collect() });
    let proposed = inventory.host.cloud.as_deref().and_then(|c| spec::InstanceTable::embedded().proposed(c));
    if let (None, Some(instance), false) = (&offer, proposed, args.print.quiet) {
        eprintln!(
            "{:>12}  this looks like {}: --instance {} holds it against what is sold under that name",
            "Hint", instance.id, instance.id
        );
    }
    let guarantees = offer.iter().flat_map(|o| &o.guarantees);
    let options = PlanOptions {
        budget: args.budget,
        only: args.only.clone(),
        skip: args.skip.clone(),
        guaranteed: guarantees.map(|g| (g.metric.clone(), g.filter.clone())).collect(),
    };
    let plan = plan::plan(&suite, &inventory, &options).map_err(|e| CliError::usage(e.to_string()))?;
    let planned = Event::Planned {
        cases: plan.cases.len(),
        not_planned: plan.not_planned.len(),
        estimate: plan.estimate,
        budget: plan.budget,
    };
    if args.dry_run {
        return dry_run(&plan, args.print.json);
    }
    let id = measure::new_run_id();
    let folder = args.out.clone().unwrap_or_else(|| Path::new("runs").join(&id));
    output::create_run_folder(&folder)?;
    if let Some(log) = &args.termination_log {
        let given = args.offer.as_deref().into_iter().chain([Path::new(&args.suite)]);
        output::refuse_input(log, &given.collect::<Vec<_>>())?;
        output::refuse_run_file(log, &folder)?;
        // Made now, not after minutes of measuring.
        let opened = std::fs::OpenOptions::new().write(true).create(true).truncate(false).open(log);
        opened.map_err(|e| CliError::cannot_create(log, &e))?;
    }
    progress.on(&planned);
    let record = skeleton(&args, id, &suite, offer.as_ref(), inventory, plan);
    let options = measure::Options {
        folder: folder.clone(),
        record,
        simulate: args.simulate.clone(),
        storage: Some(args.storage_dir.clone()),
        spent: Seconds(begin.elapsed().as_secs_f64()),
        children: Children::USUAL,
    };
    let record = measure::run(options, &mut progress).map_err(|e| measure_error(e, &folder))?;
    conclude(&record, &suite, offer.as_ref(), &folder, &args)
}

/// Goes on with an interrupted run: its suite, offer and plan count; the machine must be what it was.
fn resume(folder: &Path, args: &RunArgs, progress: &mut Progress) -> Result<Exit, CliError> {
    let record = measure::resume(folder, &Children::USUAL, progress).map_err(|e| measure_error(e, folder))?;
    let (suite, offer) = inputs::recorded(&record)?;
    conclude(&record, &suite, offer.as_ref(), folder, args)
}

/// Chooses the devices; a run that asks for a GPU and finds none is never a smaller run.
fn select(
    args: &RunArgs,
    mut inventory: Inventory,
    suite: &Suite,
    offer: Option<&Offer>,
) -> Result<Inventory, CliError> {
    let wanted = match (&args.simulate, args.device.is_empty()) {
        (Some(_), true) => vec!["sim".to_owned()],
        _ => args.device.clone(),
    };
    inventory.selected = discover::select(&inventory, &wanted).map_err(|e| match e {
        SelectError::NothingToTest { .. } => CliError::new(Exit::NothingToTest, e),
        e => CliError::usage(e),
    })?;
    let is_gpu = |d: &&crate::record::DeviceInfo| d.kind == DeviceKind::Gpu && d.id.backend != BackendId::Host;
    let gpus = inventory.selected.iter().filter_map(|id| inventory.device(id)).filter(is_gpu).count();
    let sold = offer.is_some_and(|o| o.model.is_some() || o.count.is_some_and(|n| n > 0));
    if gpus == 0 && (suite.needs_gpu || sold) {
        let who = if sold { "the offer names a GPU" } else { "the suite needs a GPU" };
        return Err(CliError::new(Exit::NothingToTest, format_args!("{who}, and no GPU is among the chosen devices"))
            .help("`gpu-assay devices` shows what each backend found"));
    }
    Ok(inventory)
}

fn dry_run(plan: &Plan, json: bool) -> Result<Exit, CliError> {
    if json {
        return output::stdout_json(plan).map(|()| Exit::Accepted);
    }
    let mut text = String::new();
    for case in &plan.cases {
        let role = if case.gate { "gate" } else { "graded" };
        text.push_str(&format!("{role:<7} {:>9} a round  {}\n", case.estimate.round.to_string(), case.id));
    }
    for case in &plan.not_planned {
        text.push_str(&format!("{:<7} {:>9}          {}: {}\n", "left out", "", case.id, case.reason));
    }
    text.push_str(&format!(
        "{} cases, {}–{} rounds, about {} of {}\n",
        plan.cases.len(),
        plan.rounds.min,
        plan.rounds.max,
        plan.estimate,
        plan.budget
    ));
    output::stdout(&output::printable(&text)).map(|()| Exit::Accepted)
}

fn skeleton(
    args: &RunArgs,
    id: String,
    suite: &Suite,
    offer: Option<&Offer>,
    inventory: Inventory,
    plan: Plan,
) -> Record {
    let simulated = inventory.selected.iter().filter_map(|id| inventory.device(id)).any(|d| d.simulated)
        || inventory.host.attributes.contains_key(HOST_SIMULATED);
    Record {
        format: FORMAT,
        id,
        tool: tool(),
        run: Run {
            started_at: measure::utc_now(),
            ended_at: None,
            duration: Seconds(0.0),
            boot_id: measure::boot_id(),
            seed: args.seed,
            arguments: std::env::args().skip(1).collect(),
            budget: args.budget,
            end: RunEnd::Died,
            simulated,
            neutralised_environment: measure::environment::neutralised(),
        },
        suite: suite.source.clone(),
        offer: offer.map(|o| o.source.clone()),
        inventory,
        plan,
        results: Vec::new(),
        telemetry: Telemetry::default(),
        ledger: Ledger::default(),
        notices: Vec::new(),
    }
}

fn tool() -> Tool {
    Tool {
        name: env!("CARGO_PKG_NAME").to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        binary_sha256: measure::binary_sha256(),
        method_versions: benchmark::ALL.iter().map(|b| (b.meta().id.to_owned(), b.meta().version)).collect(),
    }
}

fn measure_error(error: MeasureError, folder: &Path) -> CliError {
    let exit = match &error {
        MeasureError::Create { .. } => Exit::CannotCreate,
        MeasureError::Write { .. } => Exit::WriteFailed,
        MeasureError::Resume(_) => Exit::Usage,
        MeasureError::Internal(_) => Exit::Internal,
    };
    let error = CliError::new(exit, error);
    match exit {
        Exit::WriteFailed => error.help(format_args!("what was measured so far is in {}", folder.display())),
        _ => error,
    }
}

/// Judges, writes the files and prints the verdict last.
fn conclude(
    record: &Record,
    suite: &Suite,
    offer: Option<&Offer>,
    folder: &Path,
    args: &RunArgs,
) -> Result<Exit, CliError> {
    let assessment = crate::judge::judge(record, suite, offer, spec::table());
    let files: [(PathBuf, String); 2] = [
        (folder.join("assessment.json"), output::json(&assessment)?),
        (folder.join("report.html"), report::html(record, &assessment, args.print.lang)?),
    ];
    for (path, text) in &files {
        output::write_atomically(path, text)?;
    }
    if let Some(path) = &args.termination_log {
        // A device file or a file that Kubernetes mounted: written in place, not renamed.
        std::fs::write(path, termination_log(record, &assessment)).map_err(|e| CliError::write(path, &e))?;
    }
    judge::print(record, &assessment, &args.print)?;
    if !args.print.quiet {
        eprintln!("{:>12}  {}", "Report", folder.join("report.html").display());
        eprintln!("{:>12}  {}", "Record", folder.join("record.json").display());
    }
    Ok(judge::exit_of_run(record.run.end, assessment.verdict, args.fail_on))
}

/// Kubernetes keeps 4096 bytes per container.
const TERMINATION_LOG_MAX: usize = 4096;

fn termination_log(record: &Record, assessment: &Assessment) -> String {
    use crate::judge::{Class, Status};
    let failed = assessment.requirements.iter().filter(|r| r.class == Class::Gate && r.status == Status::Fail);
    let mut failed: Vec<&str> = failed.map(|r| r.id.as_str()).collect();
    loop {
        let text = serde_json::json!({
            "verdict": assessment.verdict,
            "validity": assessment.validity,
            "simulated": assessment.simulated,
            "record": record.id,
            "failed_gates": failed,
            "findings": assessment.findings.iter().map(|f| f.code.as_str()).take(20).collect::<Vec<_>>(),
        })
        .to_string();
        if text.len() <= TERMINATION_LOG_MAX || failed.is_empty() {
            return text;
        }
        failed.pop();
    }
}
