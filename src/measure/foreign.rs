//! Load by processes that are not ours, from `/proc`. In a container only the processes of its own namespace
//! are visible; a neighbour outside of it shows as steal time or lost performance, not here.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Share of one core above which a process counts as load.
pub const SHARE: f64 = 0.2;

/// A process that used CPU time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// Process id.
    pub pid: u32,
    /// Its name (hostile text).
    pub name: String,
    /// Cores' worth of CPU time since the last scan.
    pub share: f64,
}

/// Compares CPU times between scans.
pub struct Scanner {
    supervisor: u32,
    ticks_per_second: f64,
    last: BTreeMap<u32, u64>,
    at: u64,
}

impl Scanner {
    /// Leaves out `supervisor` and its children.
    pub fn new(supervisor: u32) -> Scanner {
        // SAFETY: has no preconditions.
        let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
        Scanner { supervisor, ticks_per_second: ticks.max(1) as f64, last: BTreeMap::new(), at: 0 }
    }

    /// Processes above [`SHARE`] since the last scan; none at the first. `now` in nanoseconds.
    pub fn scan(&mut self, now: u64) -> Vec<Load> {
        let Ok(folder) = std::fs::read_dir("/proc") else { return Vec::new() };
        let pids = folder.flatten().filter_map(|e| e.file_name().to_str().and_then(|n| n.parse::<u32>().ok()));
        let stats: Vec<Stat> =
            pids.filter_map(|pid| parse_stat(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)).collect();
        self.compare(&stats, now)
    }

    fn compare(&mut self, stats: &[Stat], now: u64) -> Vec<Load> {
        let seconds = now.saturating_sub(self.at) as f64 * 1e-9;
        let ours = |s: &Stat| s.pid == self.supervisor || s.parent == self.supervisor;
        let load = |s: &Stat| {
            let before = self.last.get(&s.pid)?;
            let share = s.ticks.saturating_sub(*before) as f64 / self.ticks_per_second / seconds;
            (share > SHARE && !ours(s)).then(|| Load { pid: s.pid, name: s.name.clone(), share })
        };
        let found = if self.at > 0 && seconds > 0.0 { stats.iter().filter_map(load).collect() } else { Vec::new() };
        self.last = stats.iter().map(|s| (s.pid, s.ticks)).collect();
        self.at = now;
        found
    }
}

struct Stat {
    pid: u32,
    name: String,
    parent: u32,
    /// utime + stime
    ticks: u64,
}

/// One line of `/proc/PID/stat`, see proc(5). The name may hold spaces and brackets: it ends at the last `)`.
fn parse_stat(text: &str) -> Option<Stat> {
    let (pid, rest) = text.split_once(" (")?;
    let (name, rest) = rest.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let number = |field: usize| fields.get(field - 3).and_then(|f| f.parse::<u64>().ok());
    Some(Stat {
        pid: pid.parse().ok()?,
        name: name.to_owned(),
        parent: number(4)? as u32,
        ticks: number(14)? + number(15)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(pid: u32, name: &str, parent: u32, ticks: u64) -> String {
        format!("{pid} ({name}) S {parent} 1 1 0 -1 4194560 1 2 3 4 {ticks} 0 0 0 20 0 1 0 55 1000 10")
    }

    #[test]
    fn names_may_hold_anything() {
        let stat = parse_stat(&line(7, "a) R 1 (b", 3, 42)).expect("valid");
        assert_eq!((stat.pid, stat.name.as_str(), stat.parent, stat.ticks), (7, "a) R 1 (b", 3, 42));
        assert!(parse_stat("7 (torn").is_none());
        assert!(parse_stat("").is_none());
    }

    #[test]
    fn only_strangers_above_the_share_are_reported() {
        let mut scanner = Scanner::new(10);
        scanner.ticks_per_second = 100.0;
        let at = |ticks: u64| -> Vec<Stat> {
            [(10, "ours", 1), (11, "worker", 10), (20, "stranger", 1), (21, "quiet", 1)]
                .iter()
                .filter_map(|&(pid, name, parent)| {
                    parse_stat(&line(pid, name, parent, if pid == 21 { ticks / 10 } else { ticks }))
                })
                .collect()
        };
        assert_eq!(scanner.compare(&at(100), 1_000_000_000), []);
        let found = scanner.compare(&at(200), 3_000_000_000);
        assert_eq!(found, [Load { pid: 20, name: "stranger".to_owned(), share: 0.5 }]);
    }

    #[test]
    fn the_real_proc_can_be_read() {
        let mut scanner = Scanner::new(0);
        scanner.scan(1);
        assert!(scanner.last.contains_key(&std::process::id()));
    }
}
