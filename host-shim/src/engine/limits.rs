//! What one call of a guest may use up.
//!
//! Owns the numbers and the meter that holds memory and tables to them. Every bound is a field of [`Limits`], and a
//! store cannot be made without one.

use std::time::Duration;

use wasmtime::ResourceLimiter;

/// The length of an epoch: how often the clock of guest time ticks.
pub const TICK: Duration = Duration::from_millis(10);

/// Bounds of one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Linear memory of all instances together, in bytes.
    pub memory_bytes: usize,
    /// Time that guest code runs; waiting in the host does not count.
    pub cpu: Duration,
    /// Time of the whole call.
    pub wall: Duration,
    /// Bytes that the guest may hand to the host at once: an answer, the arguments of a host call.
    pub transfer_bytes: usize,
    /// Elements of one table.
    pub table_elements: usize,
    /// Requests of one call.
    pub requests: u32,
    /// Lines to the log of one call; the rest is counted and dropped.
    pub log_lines: usize,
}

impl Limits {
    /// The bounds of the product.
    ///
    /// Memory: 128 MiB hold the largest document (10 MiB) in every form that a reader makes of it. Guest time: 10 s is
    /// a thousand times what a large feed takes. Transfer: the largest page (16 MiB), its keys and a request.
    pub const DEFAULT: Self = Self {
        memory_bytes: 128 * 1_024 * 1_024,
        cpu: Duration::from_secs(10),
        wall: Duration::from_secs(60),
        transfer_bytes: 20 * 1_024 * 1_024,
        table_elements: 20_000,
        requests: 4,
        log_lines: 64,
    };

    /// Ticks of guest time, at least one.
    pub(super) fn cpu_ticks(&self) -> u64 {
        u64::try_from(self.cpu.as_millis() / TICK.as_millis()).unwrap_or(u64::MAX).max(1)
    }
}

/// Instances, memories and tables of one store. A component of one core module has one of each and some helpers.
const MAX_INSTANCES: usize = 32;
const MAX_MEMORIES: usize = 2;
const MAX_TABLES: usize = 8;

/// Holds a store to its limits and remembers which one ended it.
#[derive(Debug)]
pub(super) struct Meter {
    limits: Limits,
    memory: usize,
    /// The largest memory seen, in bytes.
    pub(super) peak_memory: usize,
    /// Memory was refused.
    pub(super) memory_exceeded: bool,
    /// Ticks of guest time used.
    pub(super) ticks: u64,
    /// Guest time was used up.
    pub(super) cpu_exceeded: bool,
}

impl Meter {
    pub(super) fn new(limits: Limits) -> Self {
        Self { limits, memory: 0, peak_memory: 0, memory_exceeded: false, ticks: 0, cpu_exceeded: false }
    }

    /// Counts a tick; false when the budget is used up.
    pub(super) fn tick(&mut self) -> bool {
        self.ticks += 1;
        self.cpu_exceeded = self.ticks > self.limits.cpu_ticks();
        !self.cpu_exceeded
    }
}

impl ResourceLimiter for Meter {
    fn memory_growing(&mut self, current: usize, desired: usize, _maximum: Option<usize>) -> wasmtime::Result<bool> {
        let total = self.memory.saturating_sub(current).saturating_add(desired);
        if total > self.limits.memory_bytes {
            self.memory_exceeded = true;
            // An error traps with a place; a refusal would only make the guest's allocator abort somewhere.
            return Err(wasmtime::format_err!("memory limit of {} bytes", self.limits.memory_bytes));
        }
        self.memory = total;
        self.peak_memory = self.peak_memory.max(total);
        Ok(true)
    }

    fn table_growing(&mut self, _current: usize, desired: usize, _maximum: Option<usize>) -> wasmtime::Result<bool> {
        if desired > self.limits.table_elements {
            self.memory_exceeded = true;
            return Err(wasmtime::format_err!("table limit of {} elements", self.limits.table_elements));
        }
        Ok(true)
    }

    fn instances(&self) -> usize {
        MAX_INSTANCES
    }

    fn memories(&self) -> usize {
        MAX_MEMORIES
    }

    fn tables(&self) -> usize {
        MAX_TABLES
    }
}
