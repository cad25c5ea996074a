//! The wasmtime engine of this process: pooled, with a clock of guest time on a thread of its own.
//!
//! Owns the configuration of wasmtime, the pool with the permits that keep it from running full, and the ticker.

use std::sync::Arc;

use tokio::sync::{Semaphore, SemaphorePermit};
use wasmtime::{Config, Enabled, Engine, InstanceAllocationStrategy, PoolingAllocationConfig};

use super::error::{CallError, PinError};
use super::limits::{Limits, TICK};

/// Calls that run at once; each has one slot of the pool. More wait for a permit, since a full pool is an error.
pub const MAX_CALLS: u32 = 32;

/// Bytes of a slot that stay resident between calls. They are cleared at each reset, so more of them cost every call
/// more than the page faults that they save.
const KEEP_RESIDENT: usize = 64 * 1024;

/// The same where the kernel tells which pages were written: only those are cleared, so it pays up to what a usual
/// document or rendering needs. With all slots warm they come to 256 MiB.
const KEEP_RESIDENT_SCANNED: usize = 8 * 1024 * 1024;

/// wasmtime with its pool and its clock.
#[derive(Clone)]
pub struct Runtime {
    engine: Engine,
    permits: Arc<Semaphore>,
    limits: Limits,
}

impl std::fmt::Debug for Runtime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Runtime").field("limits", &self.limits).finish_non_exhaustive()
    }
}

impl Runtime {
    /// Sets up wasmtime. The limits hold for every call.
    ///
    /// # Errors
    /// Where wasmtime cannot be set up on this machine, or the clock's thread cannot be started.
    pub fn new(limits: Limits) -> Result<Self, PinError> {
        let failed = |e: &dyn std::fmt::Display| PinError::Compile(e.to_string());
        // Where address space is short the pool cannot be reserved; instances are then made on demand.
        let engine =
            Engine::new(&config(Some(&limits))).or_else(|_| Engine::new(&config(None))).map_err(|e| failed(&e))?;
        let weak = engine.weak();
        std::thread::Builder::new()
            .name("epoch".to_owned())
            .spawn(move || {
                while let Some(engine) = weak.upgrade() {
                    engine.increment_epoch();
                    drop(engine);
                    std::thread::sleep(TICK);
                }
            })
            .map_err(|e| failed(&e))?;
        Ok(Self { engine, permits: Arc::new(Semaphore::new(MAX_CALLS as usize)), limits })
    }

    /// The engine.
    pub(super) fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The limits of every call.
    #[must_use]
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Waits for a slot of the pool.
    pub(super) async fn permit(&self) -> Result<SemaphorePermit<'_>, CallError> {
        self.permits.acquire().await.map_err(|e| CallError::Host(e.to_string()))
    }
}

fn config(pool: Option<&Limits>) -> Config {
    let mut config = Config::new();
    config.wasm_component_model(true);
    config.epoch_interruption(true);
    config.wasm_backtrace_max_frames(std::num::NonZeroUsize::new(16));
    // Wide arithmetic, threads and the rest of the proposals are not what a connector needs.
    config.wasm_multi_memory(false);
    config.wasm_memory64(false);
    if let Some(limits) = pool {
        let mut pooling = PoolingAllocationConfig::new();
        let scan = PoolingAllocationConfig::is_pagemap_scan_available();
        pooling
            .total_component_instances(MAX_CALLS)
            // A component of one core module has a few small helper instances beside it.
            .total_core_instances(MAX_CALLS * 4)
            .total_memories(MAX_CALLS)
            .total_tables(MAX_CALLS * 4)
            .total_stacks(MAX_CALLS * 2)
            .max_core_instances_per_component(4)
            .max_memories_per_component(1)
            .max_tables_per_component(4)
            .table_elements(limits.table_elements)
            .max_memory_size(limits.memory_bytes)
            .max_unused_warm_slots(MAX_CALLS)
            .linear_memory_keep_resident(if scan { KEEP_RESIDENT_SCANNED } else { KEEP_RESIDENT })
            .pagemap_scan(if scan { Enabled::Yes } else { Enabled::No });
        config.allocation_strategy(InstanceAllocationStrategy::Pooling(pooling));
    }
    config
}
