//! The engines on real files.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::*;

/// `/proc/self/io` counts for the whole process: one test at a time moves bytes.
pub fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A small file in a temporary folder on the disk of the build, not on /tmp, which may be memory.
fn disk() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR").to_owned() + "/target").unwrap()
}

fn options(folder: &Path, mib: u64, preference: Preference) -> Options {
    Options { share: 1.0, reserve: Bytes(0.0), preference, ..Options::new(folder, Bytes::mib(mib), 42) }
}

fn job(op: Op, random: bool) -> Job {
    Job { op, random, block: if random { 4096 } else { 64 << 10 }, depth: 8 }
}

const ENGINES: [Preference; 3] = [Preference::Best, Preference::WithoutUring, Preference::WithoutDirect];

#[test]
fn every_engine_writes_and_reads_back_what_was_written() {
    let _alone = alone();
    let folder = disk();
    for preference in ENGINES {
        let file = Arc::new(TestFile::create(&options(folder.path(), 8, preference)).unwrap());
        for random in [false, true] {
            let mut write = Session::on(file.clone(), 42, job(Op::Write, random)).unwrap();
            // More than one pass: blocks are overwritten.
            write.run(3000.min(write.longest())).unwrap();
            assert_eq!(write.check_recent().unwrap(), Ok(8 * (write.job.block / PAGE) as u64));
            assert_eq!(write.check_file(false).unwrap(), Ok(8 << 20 >> 12), "{preference:?}");
            let mut read = Session::on(file.clone(), 42, job(Op::Read, random)).unwrap();
            read.run(100).unwrap();
            assert_eq!(read.check_recent().unwrap().unwrap(), 8 * (read.job.block / PAGE) as u64);
            assert_eq!(read.take_latency().count(), 100);
            assert_eq!(read.take_latency().count(), 0);
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left in the folder");
    }
}

#[test]
fn engines_are_chosen_with_a_reason_and_forced_fallbacks_may_not_fail_a_disk() {
    let _alone = alone();
    let folder = disk();
    let kinds = ENGINES.map(|preference| {
        let file = Arc::new(TestFile::create(&options(folder.path(), 2, preference)).unwrap());
        let session = Session::on(file, 42, job(Op::Read, true)).unwrap();
        let engine = session.engine();
        assert!(!engine.conditions["chosen_because"].is_empty());
        if session.file().choice().kind != Kind::Uring {
            assert_ne!(engine.kind, EngineKind::Decisive);
        }
        session.file().choice().kind
    });
    assert_ne!(kinds[1], Kind::Uring);
    assert_eq!(kinds[2], Kind::BufferedThreads);
}

#[test]
fn memory_is_labelled_cache() {
    let _alone = alone();
    let shm = Path::new("/dev/shm");
    if writable(shm).is_err() {
        eprintln!("skipped: needs /dev/shm");
        return;
    }
    for (op, preference) in [(Op::Read, Preference::Best), (Op::Write, Preference::Best), (Op::Read, ENGINES[2])] {
        let file = Arc::new(TestFile::create(&options(shm, 4, preference)).unwrap());
        let mut session = Session::on(file, 42, job(op, true)).unwrap();
        session.run(500).unwrap();
        assert_eq!(session.source(), Source::Cache, "{op:?}");
        assert_eq!(session.engine().kind, EngineKind::HighOnly);
        assert_eq!(session.conditions()["source"], Observed::Value("cache".to_owned()));
    }
}

#[test]
fn a_disk_is_labelled_device() {
    let _alone = alone();
    let folder = disk();
    let file = Arc::new(TestFile::create(&options(folder.path(), 8, Preference::Best)).unwrap());
    let known = ["ext4", "xfs", "f2fs"].contains(&file.filesystem().name.as_str());
    if !known || file.choice().kind == Kind::BufferedThreads {
        eprintln!("skipped: needs a build folder on a local file system with O_DIRECT");
        return;
    }
    for op in [Op::Read, Op::Write] {
        let mut session = Session::on(file.clone(), 42, job(op, false)).unwrap();
        session.run(200).unwrap();
        assert_eq!(session.source(), Source::Device, "{:?}", session.conditions()["delivered"]);
    }
}

#[test]
fn a_flipped_bit_on_the_disk_is_found() {
    let _alone = alone();
    let folder = disk();
    for preference in ENGINES {
        let file = Arc::new(TestFile::create(&options(folder.path(), 2, preference)).unwrap());
        let mut read = Session::on(file.clone(), 42, job(Op::Read, false)).unwrap();
        let place = 5 * (64 << 10) + 777;
        file.flip_bit(place).unwrap();
        let wrong = read.check_file(false).unwrap().unwrap_err();
        assert!(wrong.contains(&format!("byte {place}")), "{wrong}");
        // And in the buffers of a stretch that ends at the place: the last request's buffer is not used again.
        read.position = 0;
        read.run(6).unwrap();
        assert!(read.check_recent().unwrap().unwrap_err().contains(&format!("byte {place}")));
    }
}

#[test]
fn a_page_rewritten_since_is_not_held_against_the_reader() {
    let _alone = alone();
    let folder = disk();
    let file = Arc::new(TestFile::create(&options(folder.path(), 2, Preference::Best)).unwrap());
    let mut read = Session::on(file.clone(), 42, job(Op::Read, false)).unwrap();
    read.run(8).unwrap();
    let mut write = Session::on(file, 42, job(Op::Write, false)).unwrap();
    write.run(32).unwrap();
    assert_eq!(read.check_recent().unwrap(), Ok(0), "everything was rewritten: nothing to compare");
}

#[test]
fn cases_share_one_file() {
    let _alone = alone();
    let folder = disk();
    let options = options(folder.path(), 2, Preference::Best);
    let first = TestFile::shared(&options).unwrap();
    assert!(Arc::ptr_eq(&first, &TestFile::shared(&options).unwrap()));
    let other = TestFile::shared(&Options { seed: 43, ..options }).unwrap();
    assert!(!Arc::ptr_eq(&first, &other));
}

#[test]
fn jobs_that_make_no_sense_are_refused() {
    let _alone = alone();
    let good = job(Op::Read, true);
    assert!(good.check().is_ok());
    for bad in [
        Job { block: 0, ..good },
        Job { block: 1000, ..good },
        Job { block: 128 << 20, ..good },
        Job { depth: 0, ..good },
        Job { depth: 5000, ..good },
        Job { block: 32 << 20, depth: 64, ..good },
    ] {
        assert!(bad.check().is_err(), "{bad:?}");
    }
    let folder = disk();
    let file = Arc::new(TestFile::create(&options(folder.path(), 1, Preference::Best)).unwrap());
    assert!(matches!(Session::on(file, 1, Job { depth: 1000, ..good }), Err(DeviceError::Unsupported(_))));
}

#[test]
fn a_full_disk_and_a_missing_folder_are_clear_errors() {
    let _alone = alone();
    let folder = disk();
    let absent = TestFile::create(&options(&folder.path().join("absent"), 1, Preference::Best));
    let Err(DeviceError::Storage(text)) = absent else { panic!("{absent:?}") };
    assert!(text.contains("absent") && text.contains("No such file"), "{text}");

    let Some(mount) = tiny_tmpfs(folder.path()) else {
        eprintln!("skipped: needs permission to mount a tmpfs");
        return;
    };
    let full = TestFile::create(&options(&mount.0, 64, Preference::Best));
    assert!(matches!(full, Err(DeviceError::Storage(_) | DeviceError::Unsupported(_))), "{full:?}");
    // Without the look at the free space, the reservation finds it.
    let (file, _) = test_file::tests::nameless_for_tests(&mount.0).unwrap();
    let error = test_file::tests::reserve_for_tests(&file, 64 << 20).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::ENOSPC));
}

#[test]
fn a_disk_that_fills_up_midway_is_an_error_with_place_and_reason() {
    let _alone = alone();
    let folder = disk();
    let Some(mount) = tiny_tmpfs(folder.path()) else {
        eprintln!("skipped: needs permission to mount a tmpfs");
        return;
    };
    let file = Arc::new(TestFile::create(&options(&mount.0, 2, Preference::Best)).unwrap());
    let mut write = Session::on(file.clone(), 42, job(Op::Write, false)).unwrap();
    // Give the blocks back, and let somebody else take them.
    file.file().set_len(0).unwrap();
    std::fs::write(mount.0.join("hog"), vec![1u8; 4 << 20]).unwrap_err();
    let Err(DeviceError::Storage(text)) = write.run(32) else { panic!("the disk is full") };
    assert!(text.contains("offset") && text.contains("No space left"), "{text}");
}

struct Mount(std::path::PathBuf);

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// A tmpfs of 3 MiB, if we may mount one.
fn tiny_tmpfs(folder: &Path) -> Option<Mount> {
    let place = folder.join("tiny");
    std::fs::create_dir(&place).ok()?;
    let mount = ["-t", "tmpfs", "-o", "size=3m", "tmpfs"];
    let status =
        std::process::Command::new("mount").args(mount).arg(&place).stderr(std::process::Stdio::null()).status();
    status.ok()?.success().then_some(Mount(place))
}

#[test]
fn only_what_was_shown_not_to_read_low_may_fail_a_disk() {
    let read = Job { op: Op::Read, random: false, block: 1 << 20, depth: 16 };
    let kind = |source, kind, job, huge| decides(&source, kind, job, huge);
    assert_eq!(kind(Source::Device, Kind::Uring, read, true), EngineKind::Decisive);
    for (engine, job, huge) in [
        (Kind::Uring, read, false),
        (Kind::Uring, Job { random: true, ..read }, true),
        (Kind::Uring, Job { op: Op::Write, ..read }, true),
        (Kind::DirectThreads, read, true),
    ] {
        assert_eq!(kind(Source::Device, engine, job, huge), EngineKind::LowOnly, "{engine:?} {job:?} {huge}");
    }
    for source in [Source::Cache, Source::Unknown("no accounting".to_owned())] {
        assert_eq!(kind(source, Kind::Uring, read, true), EngineKind::HighOnly);
    }
}
