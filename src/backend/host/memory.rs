//! Buffers: page-aligned anonymous mappings, large pages where the kernel gives them, touched first by the
//! threads that will use them.

use std::path::Path;
use std::ptr::NonNull;

use super::facts;
use super::pool::Pool;
use crate::backend::DeviceError;

const PAGE: usize = 4096;
const LARGE_PAGE: usize = 2 << 20;

/// A private anonymous mapping, zero at first.
#[derive(Debug)]
pub struct Mapping {
    base: NonNull<u8>,
    mapped: usize,
    start: NonNull<u8>,
    size: usize,
}

// SAFETY: a mapping is plain memory; who reads and writes it when is up to the streams that use it.
unsafe impl Send for Mapping {}
// SAFETY: as above; `Mapping` itself hands out only raw pointers.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// `size` bytes, committed: each page is written by the pool member whose share it is in.
    pub fn new(size: usize, pool: &Pool) -> Result<Mapping, DeviceError> {
        let mapping = Mapping::reserve(size)?;
        let start = Address::new(mapping.start());
        pool.run_shares(size, |_, part| {
            for page in part.step_by(PAGE) {
                // SAFETY: `page` < `size`, inside the mapping, and nobody else knows the mapping yet.
                unsafe { start.get().add(page).write_volatile(0) };
            }
        });
        Ok(mapping)
    }

    /// `size` bytes of address space; pages are committed by whoever touches them first.
    pub fn reserve(size: usize) -> Result<Mapping, DeviceError> {
        let out_of_memory = |why: String| DeviceError::OutOfMemory(format!("{size} bytes: {why}"));
        // The kernel overcommits: without this, too large a buffer is not refused but gets the process killed.
        if let Some(available) = facts::memory_available(Path::new("/"))
            && size as f64 > available
        {
            return Err(out_of_memory(format!("{available:.0} bytes are available")));
        }
        let align = if size >= LARGE_PAGE { LARGE_PAGE } else { PAGE };
        let mapped = size
            .max(1)
            .checked_next_multiple_of(PAGE)
            .and_then(|s| s.checked_add(align))
            .ok_or_else(|| out_of_memory("larger than the address space".to_owned()))?;
        // SAFETY: an anonymous private mapping at an address of the kernel's choice touches no existing memory.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                mapped,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(out_of_memory(std::io::Error::last_os_error().to_string()));
        }
        let Some(base) = NonNull::new(base.cast::<u8>()) else {
            return Err(out_of_memory("mapped at address 0".to_owned()));
        };
        let skip = base.as_ptr().align_offset(align);
        // SAFETY: `skip` < `align`, and `mapped` holds `size` plus `align` bytes.
        let start = unsafe { base.add(skip) };
        if size >= LARGE_PAGE {
            // SAFETY: the range lies inside the mapping. A hint only: a refusal costs speed, not correctness.
            unsafe { libc::madvise(start.as_ptr().cast(), size, libc::MADV_HUGEPAGE) };
        }
        Ok(Mapping { base, mapped, start, size })
    }

    /// First byte; aligned to a page, from 2 MiB on to a large page.
    pub fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// Bytes asked for.
    pub fn size(&self) -> usize {
        self.size
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: exactly the range that `mmap` returned; nobody holds a pointer after the last owner is gone.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.mapped) };
    }
}

/// An address that pool members share; each writes only its own part.
#[derive(Clone, Copy)]
pub struct Address(*mut u8);

// SAFETY: a plain number; its users keep to disjoint parts.
unsafe impl Send for Address {}
// SAFETY: as above.
unsafe impl Sync for Address {}

impl Address {
    /// Of this memory.
    pub fn new(pointer: *mut u8) -> Address {
        Address(pointer)
    }
    /// As a pointer again.
    pub fn get(self) -> *mut u8 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_are_aligned_and_writable_to_the_last_byte() {
        let pool = Pool::new(vec![facts::affinity()[0]]).unwrap();
        for size in [0, 1, PAGE, LARGE_PAGE, LARGE_PAGE + 17] {
            let mapping = Mapping::new(size, &pool).unwrap();
            let align = if size >= LARGE_PAGE { LARGE_PAGE } else { PAGE };
            assert_eq!(mapping.start() as usize % align, 0);
            for at in [0, size / 2, size.saturating_sub(1)].into_iter().filter(|at| *at < size) {
                // SAFETY: `at` < `size`.
                unsafe {
                    mapping.start().add(at).write(7);
                    assert_eq!(mapping.start().add(at).read(), 7);
                }
            }
        }
    }

    #[test]
    fn more_than_the_machine_has_is_refused_not_killed() {
        assert!(matches!(Mapping::reserve(1 << 46), Err(DeviceError::OutOfMemory(_))));
        assert!(matches!(Mapping::reserve(usize::MAX), Err(DeviceError::OutOfMemory(_))));
    }
}
