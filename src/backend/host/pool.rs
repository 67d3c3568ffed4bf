//! A fixed team of threads, one pinned to each core we may use. The caller works as member 0, pinned while
//! it does; the others spin briefly after a job and then sleep, so that back-to-back launches cost about a
//! microsecond and an idle pool costs nothing.

use std::cell::Cell;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;

use crate::backend::DeviceError;

/// How often a waiting member looks for work before it sleeps: some 50 to 100 µs.
const SPINS: u32 = 2000;

type Job = dyn Fn(usize) + Sync;

/// The job's address, valid from its publication until every member has finished it.
#[derive(Clone, Copy)]
struct JobPointer(*const Job);

// SAFETY: the pointee is `Sync`, and `Pool::run` keeps it alive until all members are done with it.
unsafe impl Send for JobPointer {}

struct Shared {
    /// Raised for each job; what members wait for.
    generation: AtomicU64,
    job: Mutex<Option<JobPointer>>,
    /// Members that have not finished the current job.
    working: AtomicUsize,
    /// Members asleep on `wake`.
    asleep: AtomicUsize,
    lock: Mutex<()>,
    wake: Condvar,
    stop: AtomicBool,
    panicked: AtomicBool,
}

/// The team.
pub struct Pool {
    cores: Vec<usize>,
    shared: Arc<Shared>,
    members: Vec<JoinHandle<()>>,
    /// Jobs from several streams take turns.
    turn: Mutex<()>,
}

impl Pool {
    /// Starts one pinned thread per core of `cores`, less the caller's.
    pub fn new(cores: Vec<usize>) -> Result<Pool, DeviceError> {
        let shared = Arc::new(Shared {
            generation: AtomicU64::new(0),
            job: Mutex::new(None),
            working: AtomicUsize::new(0),
            asleep: AtomicUsize::new(0),
            lock: Mutex::new(()),
            wake: Condvar::new(),
            stop: AtomicBool::new(false),
            panicked: AtomicBool::new(false),
        });
        let mut pool = Pool { cores, shared, members: Vec::new(), turn: Mutex::new(()) };
        for (member, &core) in pool.cores.iter().enumerate().skip(1) {
            let shared = pool.shared.clone();
            let body = move || {
                // Refused only if the allowed set shrank since it was read; the thread then floats.
                set_affinity(&[core]);
                work(&shared, member);
            };
            let thread = std::thread::Builder::new().name(format!("host-{core}")).spawn(body);
            let thread = thread
                .map_err(|e| DeviceError::Driver { call: "pthread_create".to_owned(), message: e.to_string() })?;
            pool.members.push(thread);
        }
        Ok(pool)
    }

    /// Members, the caller included.
    pub fn threads(&self) -> usize {
        self.members.len() + 1
    }

    /// Runs `job(member)` once on every member and returns when all are done.
    pub fn run(&self, job: &(dyn Fn(usize) + Sync)) {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let _pin = Pin::to(self.cores.first().copied());
        if self.members.is_empty() {
            return job(0);
        }
        let shared = &*self.shared;
        shared.working.store(self.members.len(), Ordering::Relaxed);
        // SAFETY: only the lifetime is erased; `Finish` waits for all members before `job` can go out of scope.
        let pointer = JobPointer(unsafe { std::mem::transmute::<*const (dyn Fn(usize) + Sync + '_), *const Job>(job) });
        *shared.job.lock().unwrap_or_else(PoisonError::into_inner) = Some(pointer);
        shared.generation.fetch_add(1, Ordering::SeqCst);
        // A member that goes to sleep raises `asleep` first and looks at `generation` last: either we see
        // it here, or it sees the new generation there.
        if shared.asleep.load(Ordering::SeqCst) > 0 {
            let _guard = shared.lock.lock().unwrap_or_else(PoisonError::into_inner);
            shared.wake.notify_all();
        }
        let finish = Finish(shared);
        job(0);
        drop(finish);
        assert!(!shared.panicked.swap(false, Ordering::Relaxed), "a kernel panicked in a pool thread");
    }

    /// Runs `job` on every member with its [`share`] of `bytes`.
    pub fn run_shares(&self, bytes: usize, job: impl Fn(usize, Range<usize>) + Sync) {
        let threads = self.threads();
        self.run(&|member| job(member, share(bytes, threads, member)));
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        self.shared.generation.fetch_add(1, Ordering::SeqCst);
        drop(self.shared.lock.lock().unwrap_or_else(PoisonError::into_inner));
        self.shared.wake.notify_all();
        for member in self.members.drain(..) {
            // A member that panicked outside a job has nothing left to clean up.
            let _ = member.join();
        }
    }
}

/// Waits for all members when dropped, also while unwinding: they still use the caller's job.
struct Finish<'a>(&'a Shared);

impl Drop for Finish<'_> {
    fn drop(&mut self) {
        let mut spins = 0u32;
        while self.0.working.load(Ordering::Acquire) > 0 {
            spins += 1;
            if spins.is_multiple_of(SPINS) {
                // Somebody else may need this core to finish; a member may even have to share it with us.
                std::thread::yield_now();
            } else {
                std::hint::spin_loop();
            }
        }
    }
}

fn work(shared: &Shared, member: usize) {
    let mut seen = 0;
    loop {
        wait_for_change(shared, seen);
        if shared.stop.load(Ordering::SeqCst) {
            return;
        }
        seen = shared.generation.load(Ordering::SeqCst);
        let job = *shared.job.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(JobPointer(job)) = job {
            // SAFETY: `Pool::run` does not return before `working` is 0, so the job is still there.
            let call = std::panic::AssertUnwindSafe(|| unsafe { (*job)(member) });
            if std::panic::catch_unwind(call).is_err() {
                shared.panicked.store(true, Ordering::Relaxed);
            }
        }
        shared.working.fetch_sub(1, Ordering::Release);
    }
}

fn wait_for_change(shared: &Shared, seen: u64) {
    for _ in 0..SPINS {
        if shared.generation.load(Ordering::SeqCst) != seen {
            return;
        }
        std::hint::spin_loop();
    }
    let mut guard = shared.lock.lock().unwrap_or_else(PoisonError::into_inner);
    shared.asleep.fetch_add(1, Ordering::SeqCst);
    while shared.generation.load(Ordering::SeqCst) == seen {
        guard = shared.wake.wait(guard).unwrap_or_else(PoisonError::into_inner);
    }
    shared.asleep.fetch_sub(1, Ordering::SeqCst);
}

/// Member `member`'s part of `bytes` bytes, in whole cache lines: first touch, kernels and sums all use it,
/// so that each core works on pages of its own memory node.
pub fn share(bytes: usize, threads: usize, member: usize) -> Range<usize> {
    let lines = bytes.div_ceil(64);
    let at = |member: usize| ((lines as u128 * member as u128 / threads as u128) as usize * 64).min(bytes);
    at(member)..at(member + 1)
}

thread_local! {
    static PINNED: Cell<Option<usize>> = const { Cell::new(None) };
}

/// Keeps the current thread on one core until dropped.
pub struct Pin {
    before: Option<Vec<usize>>,
    /// Affinity belongs to this thread.
    _local: std::marker::PhantomData<*const ()>,
}

impl Pin {
    /// Pins to `core`; nothing happens where the thread already is pinned there.
    pub fn to(core: Option<usize>) -> Pin {
        let mut pin = Pin { before: None, _local: std::marker::PhantomData };
        let Some(core) = core else { return pin };
        if PINNED.get().is_none() {
            let before = super::facts::affinity();
            if !before.is_empty() && set_affinity(&[core]) {
                PINNED.set(Some(core));
                pin.before = Some(before);
            }
        }
        pin
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        if let Some(before) = self.before.take() {
            set_affinity(&before);
            PINNED.set(None);
        }
    }
}

/// Restricts the current thread to `cpus`; false if the kernel refuses.
fn set_affinity(cpus: &[usize]) -> bool {
    let mut mask = [0u64; 128];
    for cpu in cpus.iter().filter(|c| **c < 128 * 64) {
        mask[cpu / 64] |= 1 << (cpu % 64);
    }
    // SAFETY: the kernel only reads `size_of_val(&mask)` bytes of `mask`.
    unsafe { libc::syscall(libc::SYS_sched_setaffinity, 0, size_of_val(&mask), mask.as_ptr()) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::host::facts;

    fn pool(threads: usize) -> Pool {
        let allowed = facts::affinity();
        Pool::new((0..threads).map(|t| allowed[t % allowed.len()]).collect()).unwrap()
    }

    #[test]
    fn every_member_runs_every_job_once() {
        for threads in [1, 2, 5] {
            let pool = pool(threads);
            let counts: Vec<AtomicUsize> = (0..threads).map(|_| AtomicUsize::new(0)).collect();
            for _ in 0..100 {
                pool.run(&|member| {
                    counts[member].fetch_add(1, Ordering::Relaxed);
                });
            }
            assert!(counts.iter().all(|c| c.load(Ordering::Relaxed) == 100));
        }
    }

    #[test]
    fn sleeping_members_wake_up() {
        let pool = pool(3);
        let count = AtomicUsize::new(0);
        for _ in 0..5 {
            std::thread::sleep(std::time::Duration::from_millis(3));
            pool.run(&|_| {
                count.fetch_add(1, Ordering::Relaxed);
            });
        }
        assert_eq!(count.load(Ordering::Relaxed), 15);
    }

    #[test]
    fn members_are_pinned_and_the_caller_gets_its_affinity_back() {
        let before = facts::affinity();
        let pool = pool(2);
        let seen = Mutex::new(Vec::new());
        pool.run(&|member| seen.lock().unwrap().push((member, facts::affinity())));
        for (member, cpus) in seen.into_inner().unwrap() {
            assert_eq!(cpus, [pool.cores[member]]);
        }
        assert_eq!(facts::affinity(), before);
    }

    #[test]
    fn a_panicking_job_is_reported_after_all_members_are_done() {
        let pool = pool(2);
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            pool.run(&|member| assert!(member != 1, "expected by this test"));
        }));
        assert!(result.is_err());
    }

    #[test]
    fn shares_cover_everything_without_overlap() {
        for bytes in [0, 1, 63, 64, 65, 4096, 1_000_003] {
            for threads in [1, 2, 3, 64] {
                let mut next = 0;
                for member in 0..threads {
                    let part = share(bytes, threads, member);
                    assert_eq!(part.start, next.min(bytes));
                    next = part.end.max(next);
                }
                assert_eq!(next, bytes);
            }
        }
    }
}
