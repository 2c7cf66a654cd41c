//! The maximum cost of reading one input.

use std::{sync::LazyLock, time::Duration};

use parking_lot::Mutex;
use peak_alloc::PeakAlloc;
use rustix::time::{ClockId, clock_gettime};

use crate::reference;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// CPU time for one input, as a multiple of that of a template that [does all that it may](reference::work) once: such a template
/// is tried six times, and what it renders is read back. A busy machine slows down both.
const MOST_TIMES: u32 = 10;
/// CPU time below which the reference is not worth its time.
const SHORT: Duration = Duration::from_secs(1);
/// Memory for one input, in bytes. A rendered text has at most 3 MiB, and is in memory as a text, as a tree and as the values that
/// are put into it.
const MOST: usize = 128 << 20;

/// Memory is that of the whole process. The clock is this thread's: others of the process work meanwhile, too.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Reads an input within bounds.
///
/// # Panics
/// When it takes too much time or memory.
pub fn keep(target: &str, read: impl FnOnce()) {
    let _guard = ONE_AT_A_TIME.lock();
    let (began, held) = (cpu_time(), MEMORY.current_usage());
    MEMORY.reset_peak_usage();
    read();
    let took = cpu_time().saturating_sub(began);
    let grew = MEMORY.peak_usage().saturating_sub(held);
    assert!(grew < MOST, "{target}: it took {grew} bytes, and at most {MOST} are allowed");
    if took > SHORT && took >= longest(*REFERENCE) {
        // The machine may have become slower since.
        let longest = longest(reference());
        assert!(
            took < longest,
            "{target}: it took {took:?} of CPU time, and at most {longest:?} are allowed"
        );
    }
}

static REFERENCE: LazyLock<Duration> = LazyLock::new(reference);

/// The CPU time of the reference.
fn reference() -> Duration {
    let began = cpu_time();
    reference::work();
    cpu_time().saturating_sub(began)
}

fn longest(reference: Duration) -> Duration {
    reference * MOST_TIMES
}

fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let nanoseconds = u32::try_from(time.tv_nsec).unwrap_or_default();
    Duration::new(u64::try_from(time.tv_sec).unwrap_or_default(), nanoseconds)
}
