//! Parse, call, exit code; nothing else.

fn main() -> std::process::ExitCode {
    gpu_assay::cli::main().into()
}
