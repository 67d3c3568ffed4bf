//! Bytes really moved, as the kernel accounts them for this process in `/proc/self/io`. `read_bytes` and
//! `write_bytes` count what was sent to a block device, not what a cache served.

/// Running totals of this process, all threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IoCount {
    /// Bytes fetched from storage.
    pub read: u64,
    /// Bytes sent to storage.
    pub write: u64,
}

impl IoCount {
    /// Reads the totals, or says why it cannot.
    pub fn now() -> Result<IoCount, String> {
        let text = std::fs::read_to_string("/proc/self/io").map_err(|e| format!("/proc/self/io: {e}"))?;
        IoCount::parse(&text).ok_or_else(|| "/proc/self/io: no read_bytes or write_bytes".to_owned())
    }

    fn parse(text: &str) -> Option<IoCount> {
        let field = |name: &str| text.lines().find_map(|l| l.strip_prefix(name)?.trim().parse().ok());
        Some(IoCount { read: field("read_bytes:")?, write: field("write_bytes:")? })
    }
}

/// Least share of the bytes that the device must have moved for a result to count as the device's.
const DEVICE_SHARE: f64 = 0.95;

/// Where the bytes of a session came from.
#[derive(Debug, Clone, PartialEq)]
pub enum Source {
    /// The device moved them, in every stretch of I/O.
    Device,
    /// At least one stretch was served from memory.
    Cache,
    /// Not known, with the reason.
    Unknown(String),
}

/// Compares what was asked for with what the device moved, stretch by stretch.
#[derive(Debug, Clone, PartialEq)]
pub struct Account {
    /// Bytes asked for in all stretches.
    pub asked: u64,
    /// Bytes that the kernel accounted.
    pub moved: u64,
    /// Smallest share of one stretch.
    pub worst: f64,
    unknown: Option<String>,
}

impl Default for Account {
    fn default() -> Account {
        Account { asked: 0, moved: 0, worst: f64::INFINITY, unknown: None }
    }
}

impl Account {
    /// Adds one stretch of `asked` bytes, of which `moved` were accounted.
    pub fn add(&mut self, asked: u64, moved: Result<u64, String>) {
        match moved {
            Ok(moved) => {
                self.asked += asked;
                self.moved += moved;
                self.worst = self.worst.min(moved as f64 / asked.max(1) as f64);
            }
            Err(reason) => self.unknown = Some(reason),
        }
    }

    /// The conclusion so far. `uncounted` names the file system if its kind never accounts its transfers.
    pub fn source(&self, uncounted: Option<&str>) -> Source {
        match (&self.unknown, uncounted) {
            (Some(reason), _) => Source::Unknown(reason.clone()),
            (None, _) if self.asked == 0 => Source::Unknown("nothing was transferred yet".to_owned()),
            (None, _) if self.worst >= DEVICE_SHARE => Source::Device,
            (None, Some(name)) if self.moved == 0 => {
                Source::Unknown(format!("the kernel does not account transfers of {name} file systems"))
            }
            _ => Source::Cache,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_the_kernel_format() {
        let text =
            "rchar: 1\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: 4096\nwrite_bytes: 8192\ncancelled_write_bytes: 0\n";
        assert_eq!(IoCount::parse(text), Some(IoCount { read: 4096, write: 8192 }));
        assert_eq!(IoCount::parse("rchar: 1\n"), None);
        assert!(IoCount::now().is_ok());
    }

    #[test]
    fn one_cached_stretch_or_one_unread_counter_spoils_the_label() {
        let mut account = Account::default();
        assert!(matches!(account.source(None), Source::Unknown(_)));
        account.add(1000, Ok(1000));
        account.add(1000, Ok(951));
        assert_eq!(account.source(None), Source::Device);
        account.add(1000, Ok(949));
        assert_eq!(account.source(None), Source::Cache);
        account.add(1000, Err("/proc/self/io: permission denied".to_owned()));
        assert!(matches!(account.source(None), Source::Unknown(r) if r.contains("permission")));

        let mut fuse = Account::default();
        fuse.add(1000, Ok(0));
        assert_eq!(fuse.source(None), Source::Cache);
        assert!(matches!(fuse.source(Some("fuse")), Source::Unknown(_)));
    }
}
