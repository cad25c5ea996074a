//! The generated bindings of `wit/` on the host's side. Nothing but `engine` sees them.

#![allow(missing_docs, unreachable_pub, unused_qualifications, clippy::all, reason = "generated bindings")]

wasmtime::component::bindgen!({
    world: "connector-plugin",
    path: "../wit",
    imports: { default: async | trappable },
    exports: { default: async },
});
