//! Health of an instance, without I/O: Quivr's states, precedence and numbers.
//!
//! disabled > access_error > silent > active. Transient and source failures show in `last_error` alone.

use crate::store::model::Instance;

/// State of health.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Disabled for good.
    Disabled,
    /// The source refuses this reader.
    AccessError,
    /// Nothing new for longer than the policy allows.
    Silent,
    /// All is well.
    Active,
}

impl State {
    /// Name in answers and changes.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Disabled => "disabled",
            Self::AccessError => "access_error",
            Self::Silent => "silent",
            Self::Active => "active",
        }
    }
}

/// The state at a time.
#[must_use]
pub fn evaluate(instance: &Instance, now: i64) -> State {
    let newest = instance.last_item_at.unwrap_or(instance.created_at).max(instance.created_at);
    let silence = now.saturating_sub(newest);
    if instance.disabled_at.is_some() {
        State::Disabled
    } else if instance.access_error {
        State::AccessError
    } else if silence > i64::from(instance.new.silent_after_seconds) * 1_000 {
        State::Silent
    } else {
        State::Active
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::model::NewInstance;

    fn instance() -> Instance {
        Instance {
            seq: 1,
            new: NewInstance {
                connector_id: "con_1".into(),
                corpus_id: "c_1".into(),
                source_namespace: "n".into(),
                name: "n".into(),
                labels: serde_json::json!({}),
                kind: "rss".into(),
                config: serde_json::json!({}),
                interval_seconds: 300,
                silent_after_seconds: 60,
                credential_warning_seconds: 0,
                checkpoint: None,
            },
            created_at: 1_000,
            disabled_at: None,
            diagnostics: None,
            next_run_at: 0,
            next_run_because: String::new(),
            not_before: 0,
            last_run_at: None,
            last_success_at: None,
            last_item_at: None,
            last_error: None,
            access_error: false,
            health: "active".into(),
            reads: (0, 0),
        }
    }

    #[test]
    fn silence_counts_from_creation_or_the_last_new_item_and_must_be_passed() {
        let fresh = instance();
        assert_eq!(evaluate(&fresh, 61_000), State::Active);
        assert_eq!(evaluate(&fresh, 61_001), State::Silent);
        let later = Instance { last_item_at: Some(5_000), ..instance() };
        assert_eq!(evaluate(&later, 65_000), State::Active);
        assert_eq!(evaluate(&later, 65_001), State::Silent);
    }

    #[test]
    fn the_worst_state_wins() {
        let refused = Instance { access_error: true, ..instance() };
        assert_eq!(evaluate(&refused, 900_000), State::AccessError);
        let disabled = Instance { disabled_at: Some(1), ..refused };
        assert_eq!(evaluate(&disabled, 900_000), State::Disabled);
    }
}
