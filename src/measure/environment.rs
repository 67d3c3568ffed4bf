//! The environment of child processes. Variables that change arithmetic, libraries or thread counts are
//! recorded and removed, so that every machine is measured alike. Variables that say *which* devices a
//! process may see are recorded and kept: they define what was rented.

use std::collections::BTreeMap;

/// Prefixes of variables that change how vendor libraries compute or load.
const NEUTRALISED: [&str; 24] = [
    "CUDA_",
    "CUBLAS",
    "CUDNN_",
    "NVIDIA_TF32",
    "NCCL_",
    "HIP_",
    "HIPBLASLT_",
    "ROCR_",
    "ROCBLAS_",
    "TENSILE_",
    "HSA_",
    "AMD_",
    "GPU_MAX_",
    "RCCL_",
    "ZE_",
    "NEO",
    "IGC_",
    "SYCL_",
    "OPENBLAS_",
    "GOTO_",
    "OMP_",
    "MKL_",
    "BLIS_",
    "MALLOC_",
];

/// Whole names that load foreign code into a process.
const NEUTRALISED_NAMES: [&str; 3] = ["LD_PRELOAD", "LD_AUDIT", "GLIBC_TUNABLES"];

/// Variables that say which devices there are, or where the driver is: without them other hardware, or none,
/// would be measured.
const KEPT: [&str; 14] = [
    "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
    "CUDA_MPS_PIPE_DIRECTORY",
    "CUDA_MPS_LOG_DIRECTORY",
    "CUDA_HOME",
    "CUDA_PATH",
    "NVIDIA_VISIBLE_DEVICES",
    "NVIDIA_DRIVER_CAPABILITIES",
    "HIP_VISIBLE_DEVICES",
    "HIP_PATH",
    "ROCR_VISIBLE_DEVICES",
    "GPU_DEVICE_ORDINAL",
    "ZE_AFFINITY_MASK",
    "LD_LIBRARY_PATH",
];

/// What became of the variables that matter.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Scrubbed {
    /// Removed from children: name → value as found.
    pub neutralised: BTreeMap<String, String>,
    /// Kept in children because they select devices or drivers: name → value.
    pub kept: BTreeMap<String, String>,
}

/// Sorts `variables` into removed and kept; the others do not matter and are not recorded.
pub fn scrub(variables: impl Iterator<Item = (String, String)>) -> Scrubbed {
    let mut scrubbed = Scrubbed::default();
    for (name, value) in variables {
        if KEPT.contains(&name.as_str()) {
            scrubbed.kept.insert(name, value);
        } else if is_neutralised(&name) {
            scrubbed.neutralised.insert(name, value);
        }
    }
    scrubbed
}

/// This process's environment, sorted.
pub fn scrub_own() -> Scrubbed {
    scrub(std::env::vars_os().map(|(n, v)| (n.to_string_lossy().into_owned(), v.to_string_lossy().into_owned())))
}

/// Variables of this process's environment that children do not get: name → value as found.
pub fn neutralised() -> BTreeMap<String, String> {
    scrub_own().neutralised
}

fn is_neutralised(name: &str) -> bool {
    NEUTRALISED_NAMES.contains(&name) || NEUTRALISED.iter().any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_is_neutralised_and_visibility_kept() {
        let found = [
            ("NVIDIA_TF32_OVERRIDE", "1"),
            ("CUBLAS_WORKSPACE_CONFIG", ":4096:8"),
            ("CUBLASLT_LOG_LEVEL", "5"),
            ("CUDA_LAUNCH_BLOCKING", "1"),
            ("CUDA_VISIBLE_DEVICES", "2,3"),
            ("ROCR_VISIBLE_DEVICES", "0"),
            ("HSA_OVERRIDE_GFX_VERSION", "9.4.2"),
            ("OMP_NUM_THREADS", "1"),
            ("LD_PRELOAD", "/tmp/fast.so"),
            ("POCL_MAX_COMPUTE_UNITS", "2"),
            ("OCL_ICD_VENDORS", "/etc/OpenCL/vendors"),
            ("PATH", "/bin"),
        ];
        let scrubbed = scrub(found.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())));
        let removed: Vec<&str> = scrubbed.neutralised.keys().map(String::as_str).collect();
        assert_eq!(
            removed,
            [
                "CUBLASLT_LOG_LEVEL",
                "CUBLAS_WORKSPACE_CONFIG",
                "CUDA_LAUNCH_BLOCKING",
                "HSA_OVERRIDE_GFX_VERSION",
                "LD_PRELOAD",
                "NVIDIA_TF32_OVERRIDE",
                "OMP_NUM_THREADS"
            ]
        );
        let kept: Vec<&str> = scrubbed.kept.keys().map(String::as_str).collect();
        assert_eq!(kept, ["CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"]);
    }
}
