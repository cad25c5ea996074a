//! The components of this host by the kinds that they serve.
//!
//! Owns what becomes of several pins: a bad one is told and left out, the others go on.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::egress::client::Rules;
use crate::engine::error::PinError;
use crate::engine::image::Cache;
use crate::engine::pin::Pin;
use crate::engine::plugin::Plugin;
use crate::engine::runtime::Runtime;

/// A component with the rules of its pin.
#[derive(Debug, Clone)]
pub struct Pinned {
    /// The component.
    pub plugin: Plugin,
    /// What its requests may reach.
    pub rules: Rules,
    /// Private addresses are open.
    pub open: bool,
}

/// Components by kind.
#[derive(Debug, Clone, Default)]
pub struct Pins {
    by_kind: BTreeMap<String, Arc<Pinned>>,
}

/// Whether a configuration opens private addresses.
fn opens(configuration: &str) -> bool {
    serde_json::from_str::<serde_json::Value>(configuration)
        .is_ok_and(|c| c.get("allow_private_addresses") == Some(&serde_json::Value::Bool(true)))
}

impl Pins {
    /// Loads each pin. What cannot be loaded is returned beside the rest, with its reason.
    pub async fn load(runtime: &Runtime, pins: &[Pin], cache: Option<&Cache>) -> (Self, Vec<PinError>) {
        let mut loaded = Self::default();
        let mut refused = Vec::new();
        for pin in pins {
            match Plugin::load(runtime, pin, cache).await {
                Ok(plugin) => {
                    if let Some(kind) = plugin.descriptor().kinds.iter().find(|k| loaded.by_kind.contains_key(&k.name))
                    {
                        refused
                            .push(PinError::Descriptor(format!("kind {} is served by another pin already", kind.name)));
                        continue;
                    }
                    let open = opens(&pin.configuration);
                    let rules = if open { Rules::open() } else { Rules::default() };
                    let kinds: Vec<String> = plugin.descriptor().kinds.iter().map(|k| k.name.clone()).collect();
                    let pinned = Arc::new(Pinned { plugin, rules, open });
                    loaded.by_kind.extend(kinds.into_iter().map(|kind| (kind, Arc::clone(&pinned))));
                }
                Err(error) => refused.push(error),
            }
        }
        (loaded, refused)
    }

    /// The component that serves a kind.
    #[must_use]
    pub fn get(&self, kind: &str) -> Option<&Arc<Pinned>> {
        self.by_kind.get(kind)
    }

    /// Kinds and their components.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Arc<Pinned>)> {
        self.by_kind.iter().map(|(kind, pinned)| (kind.as_str(), pinned))
    }
}
