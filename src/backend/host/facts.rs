//! What this process may use of the machine: cores (affinity and cgroup quota), memory (cgroup limit),
//! caches and instruction sets. Read from `/proc` and `/sys` under a root that tests can replace.

use std::fs;
use std::path::{Path, PathBuf};

/// A limit that a control group sets, and the file that says so.
#[derive(Debug, Clone, PartialEq)]
pub struct Limit {
    /// Cores, or bytes.
    pub value: f64,
    /// File it was read from.
    pub source: String,
}

/// Controller files of this process from its own group up to the root of the hierarchy, as far as they can
/// be seen; the tightest limit on the way holds. Inside a container the path in `/proc/self/cgroup` may not
/// exist in the mounted tree: the mount's root is then the container's own group.
fn cgroup_folders(root: &Path, controller: &str) -> Vec<PathBuf> {
    let table = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let mount = root.join("sys/fs/cgroup");
    let mut folders = Vec::new();
    for line in table.lines() {
        let mut fields = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (fields.next(), fields.next(), fields.next()) else { continue };
        let bases = if controllers.is_empty() {
            // Version 2; in hybrid set-ups it is mounted one level down.
            vec![mount.clone(), mount.join("unified")]
        } else if controllers.split(',').any(|c| c == controller) {
            vec![mount.join(controllers), mount.join(controller)]
        } else {
            continue;
        };
        for base in bases {
            let mut path = Path::new(path.trim_start_matches('/'));
            loop {
                folders.push(base.join(path));
                match path.parent() {
                    Some(parent) => path = parent,
                    None => break,
                }
            }
        }
    }
    folders
}

fn number(path: &Path) -> Option<f64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

fn tightest(limits: impl Iterator<Item = Limit>) -> Option<Limit> {
    limits.min_by(|a, b| a.value.total_cmp(&b.value))
}

/// The CPU quota of this process in cores, if a control group sets one (version 1 or 2).
pub fn cpu_quota(root: &Path) -> Option<Limit> {
    let quota = |folder: PathBuf| {
        let v2 = folder.join("cpu.max");
        if let Ok(text) = fs::read_to_string(&v2) {
            let (quota, period) = text.trim().split_once(' ')?;
            let value = quota.parse::<f64>().ok()? / period.parse::<f64>().ok()?;
            return Some(Limit { value, source: v2.display().to_string() });
        }
        let v1 = folder.join("cpu.cfs_quota_us");
        let value = number(&v1)? / number(&folder.join("cpu.cfs_period_us"))?;
        Some(Limit { value, source: v1.display().to_string() })
    };
    // Version 1 says −1 for "no limit".
    tightest(cgroup_folders(root, "cpu").into_iter().filter_map(quota).filter(|l| l.value > 0.0))
}

/// The memory limit of this process in bytes, if a control group sets one below the machine's memory.
pub fn memory_limit(root: &Path) -> Option<Limit> {
    let limit = |folder: PathBuf| {
        ["memory.max", "memory.limit_in_bytes"].iter().find_map(|name| {
            let file = folder.join(name);
            Some(Limit { value: number(&file)?, source: file.display().to_string() })
        })
    };
    let total = meminfo(root, "MemTotal").unwrap_or(f64::INFINITY);
    tightest(cgroup_folders(root, "memory").into_iter().filter_map(limit).filter(|l| l.value > 0.0 && l.value < total))
}

/// Bytes of a line of `/proc/meminfo`.
fn meminfo(root: &Path, name: &str) -> Option<f64> {
    let text = fs::read_to_string(root.join("proc/meminfo")).ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(':'))?;
    let kib: f64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kib * 1024.0)
}

/// Memory this process may use: the machine's, or the control group's limit. 0 if neither can be read.
pub fn memory_usable(root: &Path) -> f64 {
    let total = meminfo(root, "MemTotal").unwrap_or(0.0);
    memory_limit(root).map_or(total, |l| l.value)
}

/// Memory that can be had now without being killed for it: what the machine has free, and what the control
/// group has left. `None` if unknown.
pub fn memory_available(root: &Path) -> Option<f64> {
    let left = |folder: PathBuf| {
        [("memory.max", "memory.current"), ("memory.limit_in_bytes", "memory.usage_in_bytes")]
            .iter()
            .find_map(|(limit, used)| Some(number(&folder.join(limit))? - number(&folder.join(used))?))
    };
    let machine = meminfo(root, "MemAvailable");
    let group = cgroup_folders(root, "memory").into_iter().filter_map(left).min_by(f64::total_cmp);
    match (machine, group) {
        (Some(machine), Some(group)) => Some(machine.min(group.max(0.0))),
        (machine, group) => machine.or(group),
    }
}

/// Logical CPUs this thread may run on, ascending; empty if the kernel does not say.
pub fn affinity() -> Vec<usize> {
    // The kernel refuses a mask shorter than its own; 8192 CPUs are more than any Linux build allows.
    let mut mask = [0u64; 128];
    // SAFETY: the kernel writes at most `size_of_val(&mask)` bytes into `mask`.
    let written = unsafe { libc::syscall(libc::SYS_sched_getaffinity, 0, size_of_val(&mask), mask.as_mut_ptr()) };
    if written <= 0 {
        return Vec::new();
    }
    (0..mask.len() * 64).filter(|cpu| mask[cpu / 64] >> (cpu % 64) & 1 == 1).collect()
}

/// A kernel CPU list such as `0-3,8,10-11`.
pub fn parse_cpu_list(text: &str) -> Option<Vec<usize>> {
    let mut cpus = Vec::new();
    for part in text.trim().split(',').filter(|p| !p.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        if last < first || last - first > 1 << 16 {
            return None;
        }
        cpus.extend(first..=last);
    }
    Some(cpus)
}

/// A kernel CPU list of ascending `cpus`, e.g. `0-3,8`.
pub fn cpu_list(cpus: &[usize]) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut i = 0;
    while i < cpus.len() {
        let mut j = i;
        while j + 1 < cpus.len() && cpus[j + 1] == cpus[j] + 1 {
            j += 1;
        }
        parts.push(if i == j { cpus[i].to_string() } else { format!("{}-{}", cpus[i], cpus[j]) });
        i = j + 1;
    }
    parts.join(",")
}

/// The CPUs to pin threads to: one per physical core of `allowed` (hardware threads share the units that we
/// measure), no more than the quota's whole cores, at least one.
pub fn cores(root: &Path, allowed: &[usize], quota: Option<&Limit>) -> Vec<usize> {
    let mut taken: Vec<usize> = Vec::new();
    let mut cores = Vec::new();
    for &cpu in allowed {
        let file = root.join(format!("sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"));
        let siblings = fs::read_to_string(file).ok().and_then(|t| parse_cpu_list(&t)).unwrap_or_default();
        if !taken.contains(&cpu) {
            cores.push(cpu);
            taken.extend(siblings);
        }
    }
    let most = quota.map_or(usize::MAX, |l| (l.value.floor() as usize).max(1));
    cores.truncate(most);
    cores
}

/// Bytes of last-level cache that the given CPUs reach, all instances added up; `None` if not shown.
pub fn last_level_cache(root: &Path, cpus: &[usize]) -> Option<f64> {
    let mut instances: Vec<(String, f64)> = Vec::new();
    for cpu in cpus {
        let cache = root.join(format!("sys/devices/system/cpu/cpu{cpu}/cache"));
        let level = |index: &u32| number(&cache.join(format!("index{index}/level"))).unwrap_or(0.0);
        let last = (0..8).filter(|i| level(i) > 0.0).max_by(|a, b| level(a).total_cmp(&level(b)))?;
        let folder = cache.join(format!("index{last}"));
        let size = fs::read_to_string(folder.join("size")).ok()?;
        let kib: f64 = size.trim().strip_suffix('K')?.parse().ok()?;
        let shared = fs::read_to_string(folder.join("shared_cpu_list")).unwrap_or_else(|_| cpu.to_string());
        if !instances.iter().any(|(s, _)| *s == shared) {
            instances.push((shared, kib * 1024.0));
        }
    }
    (!instances.is_empty()).then(|| instances.iter().map(|(_, size)| size).sum())
}

/// Highest clock in hertz that cpufreq shows for the given CPUs; `None` where it shows nothing (most guests).
pub fn clock_max(root: &Path, cpus: &[usize]) -> Option<f64> {
    let file = |cpu: &usize| root.join(format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/cpuinfo_max_freq"));
    cpus.iter().filter_map(|cpu| number(&file(cpu))).max_by(f64::total_cmp).map(|khz| khz * 1e3)
}

/// Vendor and model of the CPU as the kernel shows them.
pub fn cpu_model(root: &Path) -> (String, String) {
    let text = fs::read_to_string(root.join("proc/cpuinfo")).unwrap_or_default();
    let field = |name: &str| {
        let line = text.lines().find(|l| l.split(':').next().is_some_and(|k| k.trim() == name))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let vendor = field("vendor_id").or_else(|| field("CPU implementer")).unwrap_or_else(|| "unknown".to_owned());
    let model = field("model name").or_else(|| field("Processor")).or_else(|| {
        // Arm kernels name no model, only numbers.
        Some(format!("{} part {} revision {}", std::env::consts::ARCH, field("CPU part")?, field("CPU revision")?))
    });
    (vendor, model.unwrap_or_else(|| std::env::consts::ARCH.to_owned()))
}

/// Instruction sets found at run time that our kernels choose between, widest first.
pub fn instruction_sets() -> Vec<&'static str> {
    let mut sets = Vec::new();
    let mut add = |there: bool, name: &'static str| sets.extend(there.then_some(name));
    #[cfg(target_arch = "x86_64")]
    {
        add(is_x86_feature_detected!("avx512fp16"), "AVX512-FP16");
        add(is_x86_feature_detected!("avx512vnni"), "AVX512-VNNI");
        add(is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw"), "AVX-512");
        add(is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma"), "AVX2");
    }
    #[cfg(target_arch = "aarch64")]
    {
        add(std::arch::is_aarch64_feature_detected!("dotprod"), "NEON dot product");
        add(std::arch::is_aarch64_feature_detected!("neon"), "NEON");
    }
    if sets.is_empty() {
        sets.push("scalar");
    }
    sets
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    #[test]
    fn the_tightest_group_on_the_way_up_limits_cores() {
        let root = tree(&[
            ("proc/self/cgroup", "0::/kube/pod\n"),
            ("sys/fs/cgroup/kube/cpu.max", "150000 100000\n"),
            ("sys/fs/cgroup/kube/pod/cpu.max", "max 100000\n"),
        ]);
        let quota = cpu_quota(root.path()).unwrap();
        assert_eq!(quota.value, 1.5);
        assert!(quota.source.ends_with("kube/cpu.max"));
        assert_eq!(cores(root.path(), &[0, 1, 2, 3], Some(&quota)), [0]);
    }

    #[test]
    fn version_one_quota_and_missing_path_inside_a_container() {
        let root = tree(&[
            ("proc/self/cgroup", "4:cpu,cpuacct:/docker/abc\n"),
            ("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "250000\n"),
            ("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n"),
        ]);
        assert_eq!(cpu_quota(root.path()).unwrap().value, 2.5);
        fs::write(root.path().join("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us"), "-1\n").unwrap();
        assert_eq!(cpu_quota(root.path()), None);
    }

    #[test]
    fn a_quota_below_one_core_leaves_one() {
        let root = tree(&[]);
        let quota = Limit { value: 0.3, source: String::new() };
        assert_eq!(cores(root.path(), &[5, 6], Some(&quota)), [5]);
    }

    #[test]
    fn one_thread_per_physical_core() {
        let topology = |cpu: usize, list: &'static str| {
            (format!("sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"), list)
        };
        let files = [topology(0, "0,2"), topology(1, "1,3"), topology(2, "0,2"), topology(3, "1,3")];
        let root = tree(&files.iter().map(|(p, t)| (p.as_str(), *t)).collect::<Vec<_>>());
        assert_eq!(cores(root.path(), &[0, 1, 2, 3], None), [0, 1]);
        assert_eq!(cores(root.path(), &[2, 3], None), [2, 3]);
    }

    #[test]
    fn memory_is_the_group_limit_where_it_is_below_the_machine() {
        let root = tree(&[
            ("proc/self/cgroup", "0::/\n"),
            ("proc/meminfo", "MemTotal:       8000000 kB\nMemAvailable:   4000000 kB\n"),
            ("sys/fs/cgroup/memory.max", "1000000000\n"),
            ("sys/fs/cgroup/memory.current", "400000000\n"),
        ]);
        assert_eq!(memory_usable(root.path()), 1e9);
        assert_eq!(memory_available(root.path()), Some(6e8));
        fs::write(root.path().join("sys/fs/cgroup/memory.max"), "max\n").unwrap();
        assert_eq!(memory_usable(root.path()), 8e6 * 1024.0);
        assert_eq!(memory_available(root.path()), Some(4e6 * 1024.0));
    }

    #[test]
    fn caches_shared_by_several_cpus_count_once() {
        let mut files = Vec::new();
        for cpu in 0..4 {
            let base = format!("sys/devices/system/cpu/cpu{cpu}/cache");
            files.push((format!("{base}/index0/level"), "1".to_owned()));
            files.push((format!("{base}/index0/size"), "32K".to_owned()));
            files.push((format!("{base}/index3/level"), "3".to_owned()));
            files.push((format!("{base}/index3/size"), "16384K".to_owned()));
            files.push((format!("{base}/index3/shared_cpu_list"), if cpu < 2 { "0-1" } else { "2-3" }.to_owned()));
        }
        let root = tree(&files.iter().map(|(p, t)| (p.as_str(), t.as_str())).collect::<Vec<_>>());
        let mib = (1 << 20) as f64;
        assert_eq!(last_level_cache(root.path(), &[0, 1]), Some(16.0 * mib));
        assert_eq!(last_level_cache(root.path(), &[0, 1, 2]), Some(32.0 * mib));
        assert_eq!(last_level_cache(root.path(), &[9]), None);
    }

    #[test]
    fn cpu_lists_round_trip() {
        assert_eq!(parse_cpu_list("0-3,8,10-11\n"), Some(vec![0, 1, 2, 3, 8, 10, 11]));
        assert_eq!(cpu_list(&[0, 1, 2, 3, 8, 10, 11]), "0-3,8,10-11");
        assert_eq!(parse_cpu_list("3-1"), None);
        assert_eq!(parse_cpu_list("0-99999999"), None);
        assert_eq!(parse_cpu_list("x"), None);
    }

    #[test]
    fn this_machine_shows_what_it_must() {
        let root = Path::new("/");
        assert!(!affinity().is_empty());
        assert!(memory_usable(root) > 1e6);
        assert!(!cpu_model(root).1.is_empty());
        assert!(!instruction_sets().is_empty());
    }
}
