//! The components of this host by the kinds that they serve.
//!
//! Owns what becomes of several pins: a bad one is told and left out, the others go on.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

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
}

/// Components by kind.
#[derive(Debug, Clone, Default)]
pub struct Pins {
    by_kind: BTreeMap<String, Arc<Pinned>>,
}

impl Pins {
    /// Loads each pin. What cannot be loaded is returned beside the rest, with its reason.
    pub async fn load(runtime: &Runtime, pins: &[Pin], cache: Option<&Cache>) -> (Self, Vec<PinError>) {
        let mut loaded = Self::default();
        let mut refused = Vec::new();
        for pin in pins {
            match load(runtime, pin, cache).await {
                Ok(Pinned { plugin, rules }) => {
                    if let Some(kind) = plugin.descriptor().kinds.iter().find(|k| loaded.by_kind.contains_key(&k.name))
                    {
                        refused
                            .push(PinError::Descriptor(format!("kind {} is served by another pin already", kind.name)));
                        continue;
                    }
                    let kinds: Vec<String> = plugin.descriptor().kinds.iter().map(|k| k.name.clone()).collect();
                    let pinned = Arc::new(Pinned { plugin, rules });
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

/// Whether a pin's configuration fits its component's schema; else every run of it would fail.
fn fits(configuration: &str, schema: &Value) -> Result<(), PinError> {
    let value: Value = serde_json::from_str(configuration).map_err(|e| PinError::Configuration(e.to_string()))?;
    let validator = jsonschema::validator_for(schema)
        .map_err(|_| PinError::Descriptor("its configuration schema is no JSON Schema".to_owned()))?;
    match validator.iter_errors(&value).next() {
        Some(error) => Err(PinError::Configuration(error.to_string())),
        None => Ok(()),
    }
}

/// A component with what its pin opens; the component is told the rest of its configuration.
async fn load(runtime: &Runtime, pin: &Pin, cache: Option<&Cache>) -> Result<Pinned, PinError> {
    let (rules, configuration) = Rules::of(&pin.configuration)?;
    let plugin = Plugin::load(runtime, &Pin { configuration, ..pin.clone() }, cache).await?;
    fits(plugin.configuration(), &plugin.descriptor().configuration_schema)?;
    Ok(Pinned { plugin, rules })
}
