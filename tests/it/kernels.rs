//! The device code compiles in every dialect, not only in the one that a test machine can run.

use std::process::{Command, Stdio};

use gpu_assay::kernel::Family;

use crate::component;

/// The first compiler of `names` that starts.
fn compiler(names: &[&'static str]) -> Option<&'static str> {
    let starts = |name: &&str| {
        let version = Command::new(name).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        version.is_ok_and(|status| status.success())
    };
    names.iter().copied().find(starts)
}

/// Compiles every family with each set of arguments, to nowhere.
fn compiles(compiler: &str, dialects: &[&[&str]]) {
    let folder = tempfile::tempdir().unwrap();
    for family in Family::ALL {
        let source = folder.path().join(family.name());
        std::fs::write(&source, family.source()).unwrap();
        for arguments in dialects {
            let output =
                Command::new(compiler).args(*arguments).args(["-o", "/dev/null"]).arg(&source).output().unwrap();
            let errors = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{family:?} with {arguments:?}: {errors}");
        }
    }
}

#[test]
fn device_code_compiles_for_cuda_hip_and_opencl() {
    // Older ones lack the vector functions that the HIP dialect uses.
    let Some(clang) = compiler(&["clang-19", "clang-20", "clang-18", "clang-21"]) else {
        return component::missing("clang-19");
    };
    let cuda = ["-x", "cuda", "--cuda-device-only", "-nocudainc", "-nocudalib", "-O2", "-S"];
    let hip = ["-x", "hip", "--cuda-device-only", "-nogpuinc", "-nogpulib", "-O2", "-S"];
    let opencl = ["-x", "cl", "-cl-std=CL1.2", "-Xclang", "-finclude-default-header", "-fsyntax-only"];
    let with = |base: &[&'static str], more: &[&'static str]| -> Vec<&'static str> { [base, more].concat() };
    let dialects = [
        with(&cuda, &["--cuda-gpu-arch=sm_52"]),
        with(&cuda, &["--cuda-gpu-arch=sm_90"]),
        with(&hip, &["--offload-arch=gfx90a"]),
        with(&hip, &["--offload-arch=gfx1100"]),
        with(&opencl, &[]),
        with(&opencl, &["-DHAS_FP64", "-DHAS_FP16"]),
        with(&opencl, &["-DHAS_FP64", "-DCONTIGUOUS", "-DCHAINS=64"]),
    ];
    compiles(clang, &dialects.each_ref().map(Vec::as_slice));
}

#[test]
fn device_code_compiles_as_cpp() {
    let Some(compiler) = compiler(&["c++", "g++", "clang++"]) else { return component::missing("c++") };
    let base = ["-x", "c++", "-std=c++17", "-fsyntax-only", "-Wall", "-Wno-unused", "-Werror"];
    compiles(compiler, &[&base, &[&base[..], &["-DCONTIGUOUS"]].concat()]);
}
