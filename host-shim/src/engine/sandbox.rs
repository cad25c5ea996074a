//! One call: a fresh store that cannot be made without its limits, used once and dropped.
//!
//! Owns the only place where a store is made, the two clocks around a call (guest time by epochs, wall time by tokio)
//! and the reading of why a call ended.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use wasmtime::{Store, Trap, UpdateDeadline};

use super::bindings::{ConnectorPlugin, ConnectorPluginPre};
use super::error::CallError;
use super::host::State;
use super::limits::Limits;
use super::runtime::Runtime;
use super::upstream::Upstream;

/// Handles of resources in one store; the contract has none.
const MAX_HANDLES: usize = 16;

/// What a call used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Guest time in ticks of [`super::limits::TICK`].
    pub ticks: u64,
    /// Largest memory in bytes.
    pub peak_memory: usize,
}

/// A store with its limits in force. Its only use consumes it.
pub(super) struct Sandbox<'a> {
    store: Store<State>,
    limits: Limits,
    pre: &'a ConnectorPluginPre<State>,
}

/// The future of a call inside a store.
pub(super) type Calling<'s, T> = Pin<Box<dyn Future<Output = wasmtime::Result<T>> + Send + 's>>;

impl<'a> Sandbox<'a> {
    /// The one constructor: limits on memory, tables, instances, handles, guest time and transferred bytes.
    fn new(runtime: &Runtime, pre: &'a ConnectorPluginPre<State>, upstream: Arc<dyn Upstream>) -> Self {
        let limits = runtime.limits();
        let mut store = Store::new(runtime.engine(), State::new(limits, upstream));
        store.limiter(|state| &mut state.meter);
        store.set_hostcall_fuel(limits.transfer_bytes);
        store.set_max_component_handles(MAX_HANDLES);
        store.set_epoch_deadline(1);
        // A wait inside the host costs about one tick however long it lasts, so the count follows guest time.
        store.epoch_deadline_callback(|mut context| {
            Ok(if context.data_mut().meter.tick() { UpdateDeadline::Yield(1) } else { UpdateDeadline::Interrupt })
        });
        Self { store, limits, pre }
    }

    /// Runs one call in a store of its own and drops it, whatever happens. `wall` can only tighten the limit.
    pub(super) async fn call<T: Send>(
        runtime: &Runtime,
        pre: &'a ConnectorPluginPre<State>,
        upstream: Arc<dyn Upstream>,
        wall: Duration,
        call: impl for<'s> FnOnce(&'s ConnectorPlugin, &'s mut Store<State>) -> Calling<'s, T> + Send,
    ) -> (Result<T, CallError>, Usage) {
        let permit = match runtime.permit().await {
            Ok(permit) => permit,
            Err(error) => return (Err(error), Usage::default()),
        };
        let mut sandbox = Self::new(runtime, pre, upstream);
        let wall = wall.min(sandbox.limits.wall);
        let store = &mut sandbox.store;
        let outcome = tokio::time::timeout(wall, async {
            let instance = sandbox.pre.instantiate_async(&mut *store).await?;
            call(&instance, store).await
        })
        .await;
        let state = sandbox.store.data();
        state.finish();
        let usage = Usage { ticks: state.meter.ticks, peak_memory: state.meter.peak_memory };
        let result = match outcome {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => Err(classify(&error, state)),
            Err(_) => Err(CallError::Wall(wall)),
        };
        drop(sandbox);
        drop(permit);
        (result, usage)
    }
}

/// Why a call ended: the meter knows first, then the trap; what is neither is an answer that could not be taken over.
fn classify(error: &wasmtime::Error, state: &State) -> CallError {
    tracing::debug!(target: "guest", error = format!("{error:#}"), "a call of the component ended");
    if state.meter.memory_exceeded {
        return CallError::Memory(state.limits.memory_bytes);
    }
    if state.meter.cpu_exceeded {
        return CallError::Cpu(state.limits.cpu);
    }
    match error.downcast_ref::<Trap>() {
        Some(
            Trap::StringOutOfBounds
            | Trap::ListOutOfBounds
            | Trap::InvalidChar
            | Trap::InvalidDiscriminant
            | Trap::UnalignedPointer,
        ) => CallError::invalid("invalid_abi", "a value does not lie where the component says"),
        Some(Trap::Interrupt) => CallError::Cpu(state.limits.cpu),
        Some(trap) => CallError::Trap { trap: trap_name(trap), place: state.panic_place.clone() },
        // wasmtime has no public type for a transfer past its bound, and other errors of lifting have none either.
        None if format!("{error:#}").contains("fuel allocated for hostcalls") => CallError::invalid(
            "response_too_large",
            format!("more than {} bytes were handed over at once", state.limits.transfer_bytes),
        ),
        None => CallError::invalid("invalid_abi", "a value could not be taken over"),
    }
}

fn trap_name(trap: &Trap) -> String {
    let name = format!("{trap:?}");
    let mut out = String::with_capacity(name.len() + 8);
    for c in name.chars() {
        if c.is_ascii_uppercase() && !out.is_empty() {
            out.push(' ');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}
