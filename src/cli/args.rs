//! Flags and subcommands, exactly as written by the user.

use std::path::PathBuf;

use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};

use crate::exit::Exit;
use crate::report::Lang;
use crate::unit::Seconds;

/// Is this rented GPU instance what was sold, and can I prove it?
#[derive(Debug, Parser)]
#[command(name = "gpu-assay", version, about, after_help = exit_codes(), max_term_width = 100)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Measure this machine, judge it and write the report
    Run(Box<RunArgs>),
    /// Show the devices that can be measured, and why others cannot
    Devices(DevicesArgs),
    /// List benchmarks, suites, GPUs of the spec table or instance types
    List(ListArgs),
    /// Explain a benchmark, metric, finding code, verdict or the statistics
    Explain(ExplainArgs),
    /// Vendor figures: list, show, check
    Spec(SpecArgs),
    /// What a provider sells: check its claims before renting
    Offer(OfferArgs),
    /// Judge a saved record again
    Judge(JudgeArgs),
    /// Place each result of a saved record among published measurements of the same model
    Normal(NormalArgs),
    /// Render a saved record
    Report(ReportArgs),
    /// Print the JSON Schema of a file format
    Schema(SchemaArgs),
    /// Check what this machine lets the tool see, and whether the tool catches faults
    Doctor(DoctorArgs),
    /// Print the manual page (roff)
    Man,
    /// Worker processes started by `run`
    #[command(hide = true)]
    Child(ChildArgs),
}

/// Options of `run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// Suite: quick, standard, or a file
    #[arg(long, default_value = "quick", value_name = "NAME|FILE")]
    pub suite: String,
    /// Device to measure, e.g. cuda:0, opencl:1, host; repeatable. Default: all GPUs
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    pub device: Vec<String>,
    /// What the provider sold (TOML)
    #[arg(long, value_name = "FILE")]
    pub offer: Option<PathBuf>,
    /// Folder for this run's files [default: runs/<id>]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Only cases that match, e.g. gemm or 'gemm[*fp64*]'; repeatable
    #[arg(long, value_name = "PATTERN", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Leave out cases that match; repeatable
    #[arg(long, value_name = "PATTERN", value_delimiter = ',')]
    pub skip: Vec<String>,
    /// Time allowed for the whole run, e.g. 90s [default: the suite's]
    #[arg(long, value_name = "TIME", value_parser = parse_seconds)]
    pub budget: Option<Seconds>,
    /// Measure simulated devices, e.g. 8xh100-sxm5-80gb:power-cap, in a simulated machine with e.g.
    /// +host:cpus=192,ram=2TiB,nvme=30.72TB behind it. Everything is then marked SIMULATED
    #[arg(long, value_name = "DEVICES")]
    pub simulate: Option<String>,
    /// Folder whose file system is measured
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub storage_dir: PathBuf,
    /// What was sold, as this instance type of the table states it (`gpu-assay list instances`), e.g. aws/p5.48xlarge
    #[arg(long, value_name = "TYPE", conflicts_with = "offer")]
    pub instance: Option<String>,
    /// Continue the interrupted run in this folder, with its plan; it gets what was left of its time, and the time
    /// to prepare and heat up again
    #[arg(long, value_name = "DIR", conflicts_with_all = [
        "out", "suite", "device", "offer", "instance", "only", "skip", "simulate", "budget", "storage_dir", "dry_run", "seed",
    ])]
    pub resume: Option<PathBuf>,
    /// Show what would be measured, and stop
    #[arg(long)]
    pub dry_run: bool,
    /// Also turn this verdict into exit code 1
    #[arg(long, value_name = "WHAT")]
    pub fail_on: Option<FailOn>,
    /// Write the verdict as at most 4096 bytes of JSON to this file (Kubernetes: /dev/termination-log)
    #[arg(long, value_name = "FILE")]
    pub termination_log: Option<PathBuf>,
    /// Seed of all generated data; results compare only at the same method, not the same seed
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub seed: u64,
    /// How results are printed.
    #[command(flatten)]
    pub print: PrintArgs,
}

/// How a command prints.
#[derive(Debug, Clone, Args)]
pub struct PrintArgs {
    /// Print one JSON document on stdout instead of text
    #[arg(long)]
    pub json: bool,
    /// No progress; the last line only
    #[arg(long, short)]
    pub quiet: bool,
    /// Language of report and verdict: en, zh-CN
    #[arg(long, default_value = "en", value_parser = parse_lang)]
    pub lang: Lang,
}

/// What `--fail-on` may name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    /// Accepted with reservations
    Reservations,
}

/// Options of `devices`.
#[derive(Debug, Args)]
pub struct DevicesArgs {
    /// Also simulated devices
    #[arg(long, value_name = "DEVICES")]
    pub simulate: Option<String>,
    /// JSON instead of text
    #[arg(long)]
    pub json: bool,
}

/// Options of `list`.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// What to list
    #[arg(default_value = "benchmarks")]
    pub what: Listing,
    /// JSON instead of text
    #[arg(long)]
    pub json: bool,
}

/// What can be listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Listing {
    /// Ways to measure
    Benchmarks,
    /// What to run and demand
    Suites,
    /// Models of the spec table
    Gpus,
    /// Rented instance types
    Instances,
}

/// Options of `explain`.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// Benchmark, metric, finding code (GA-…), verdict, status or "statistics"
    pub id: String,
    /// With "statistics": simulate the decision rule and print its error rates
    #[arg(long)]
    pub simulate: bool,
    /// Language: en, zh-CN
    #[arg(long, default_value = "en", value_parser = parse_lang)]
    pub lang: Lang,
}

/// Options of `spec`.
#[derive(Debug, Args)]
pub struct SpecArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: SpecCommand,
}

/// Subcommands of `spec`.
#[derive(Debug, Subcommand)]
pub enum SpecCommand {
    /// All models
    List {
        /// JSON instead of text
        #[arg(long)]
        json: bool,
    },
    /// Figures of one model with their sources
    Show {
        /// Spec id, marketing or driver name
        model: String,
        /// A part of it, e.g. 3g.40gb (MIG) or 20C (vGPU): derived figures
        #[arg(long, value_name = "PROFILE")]
        slice: Option<String>,
        /// JSON instead of text
        #[arg(long)]
        json: bool,
    },
    /// Check the table: units, ids, sources, derivation
    Check {
        /// Files to check instead of the built-in table
        files: Vec<PathBuf>,
    },
    /// Rebuild the bands from the published measurements and print them
    Bands,
    /// How the bands decide on published measurements, each judged without its own source
    Quality {
        /// JSON instead of text
        #[arg(long)]
        json: bool,
    },
}

/// Options of `offer`.
#[derive(Debug, Args)]
pub struct OfferArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: OfferCommand,
}

/// Subcommands of `offer`.
#[derive(Debug, Subcommand)]
pub enum OfferCommand {
    /// Print the offer that an instance type stands for (GPUs, links, CPUs, memory, disks, network), to be completed with
    /// price, claims and guarantees
    New {
        /// Instance type, e.g. aws/p5.48xlarge
        instance: String,
    },
    /// Print the prices of an instance type as a catalogue in SkyPilot's shape (vms.csv) states them, for an offer file
    Prices {
        /// The catalogue
        file: PathBuf,
        /// Instance type in the provider's words, e.g. p5.48xlarge
        #[arg(long)]
        instance: String,
        /// Region; needed where it is sold in several
        #[arg(long)]
        region: Option<String>,
    },
    /// Check every claim against the vendor's figures, and what the offer states against its own claims and the instance
    /// type that it names: exit 0 all true, 1 any false, 3 any unknown or nothing to check, 2 not readable
    Check {
        /// offer.toml
        file: PathBuf,
        /// JSON instead of text
        #[arg(long)]
        json: bool,
        /// Language: en, zh-CN
        #[arg(long, default_value = "en", value_parser = parse_lang)]
        lang: Lang,
    },
}

/// Options of `judge`.
#[derive(Debug, Args)]
pub struct JudgeArgs {
    /// record.json or its folder
    pub record: PathBuf,
    /// Judge by this suite instead of the recorded one
    #[arg(long, value_name = "NAME|FILE")]
    pub suite: Option<String>,
    /// Judge against this offer instead of the recorded one
    #[arg(long, value_name = "FILE")]
    pub offer: Option<PathBuf>,
    /// Write the assessment here
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Also turn this verdict into exit code 1
    #[arg(long, value_name = "WHAT")]
    pub fail_on: Option<FailOn>,
    /// How results are printed.
    #[command(flatten)]
    pub print: PrintArgs,
}

/// Options of `normal`.
#[derive(Debug, Args)]
pub struct NormalArgs {
    /// record.json or its folder
    pub record: PathBuf,
    /// JSON instead of text
    #[arg(long)]
    pub json: bool,
    /// Language: en, zh-CN
    #[arg(long, default_value = "en", value_parser = parse_lang)]
    pub lang: Lang,
}

/// Options of `report`.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// record.json or its folder
    pub record: PathBuf,
    /// Format
    #[arg(long, default_value = "html")]
    pub format: Format,
    /// File, or - for stdout [default: -]
    #[arg(long, short, value_name = "FILE", default_value = "-")]
    pub output: PathBuf,
    /// Language: en, zh-CN
    #[arg(long, default_value = "en", value_parser = parse_lang)]
    pub lang: Lang,
}

/// Formats of `report`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// One self-contained page
    Html,
    /// The assessment
    Json,
    /// As printed after a run
    Terminal,
}

/// Options of `schema`.
#[derive(Debug, Args)]
pub struct SchemaArgs {
    /// Which file
    pub what: SchemaOf,
}

/// Files with a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SchemaOf {
    /// record.json
    Record,
    /// assessment.json
    Assessment,
    /// offer.toml
    Offer,
}

/// Options of `doctor`.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Inject a wrong element, a slow kernel, a truncated copy and a lying disk on this machine; each must be caught
    #[arg(long)]
    pub self_test: bool,
    /// Folder whose file system is looked at
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub storage_dir: PathBuf,
    /// JSON instead of text
    #[arg(long)]
    pub json: bool,
}

/// Options of the hidden `child`.
#[derive(Debug, Args)]
pub struct ChildArgs {
    /// Which child.
    #[command(subcommand)]
    pub command: ChildCommand,
}

/// Children of a run.
#[derive(Debug, Subcommand)]
pub enum ChildCommand {
    /// Measures one device set, told by JSON lines on stdin
    Worker {
        /// Simulated devices
        #[arg(long)]
        simulate: Option<String>,
    },
    /// Reads sensors
    Telemetry {
        /// Simulated devices
        #[arg(long)]
        simulate: Option<String>,
    },
    /// Prints the inventory
    Discover {
        /// Simulated devices
        #[arg(long)]
        simulate: Option<String>,
        /// Folder whose file system is measured
        #[arg(long, default_value = ".")]
        storage_dir: PathBuf,
    },
}

fn parse_seconds(text: &str) -> Result<Seconds, String> {
    let seconds: Seconds = text.parse().map_err(|e: crate::unit::ParseQuantityError| e.to_string())?;
    if seconds.get() > 0.0 { Ok(seconds) } else { Err("must be positive".to_owned()) }
}

fn parse_lang(text: &str) -> Result<Lang, String> {
    text.parse().map_err(|_| format!("\"{text}\" is not a language known here (en, zh-CN)"))
}

fn exit_codes() -> String {
    let mut text = String::from("Exit codes:\n");
    for (exit, meaning) in Exit::ALL {
        text.push_str(&format!("  {:>3}  {meaning}\n", exit.code()));
    }
    text
}

/// The manual page, made from the same definitions as `--help`.
pub fn man_page() -> String {
    let mut page = Vec::new();
    // Writing to memory does not fail.
    let _ = clap_mangen::Man::new(Cli::command()).render(&mut page);
    String::from_utf8_lossy(&page).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn help_names_every_exit_code() {
        let help = Cli::command().render_long_help().to_string();
        for (_, meaning) in Exit::ALL {
            assert!(help.contains(meaning), "{meaning}");
        }
    }
}
