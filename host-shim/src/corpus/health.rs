//! Health of an instance, without I/O: Quivr's states, precedence and numbers.
//!
//! disabled > access_error > credential_expiring > silent > active. Transient and source failures show in `last_error` alone.

use crate::store::model::Instance;

/// State of health.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Disabled for good.
    Disabled,
    /// The source refuses this reader.
    AccessError,
    /// The credential expires soon, or has.
    CredentialExpiring,
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
            Self::CredentialExpiring => "credential_expiring",
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
    } else if expires_within(instance, now) {
        State::CredentialExpiring
    } else if silence > i64::from(instance.new.silent_after_seconds) * 1_000 {
        State::Silent
    } else {
        State::Active
    }
}

/// Whether the credential expires at or before the end of the warning time.
fn expires_within(instance: &Instance, now: i64) -> bool {
    let warned_until = now.saturating_add(i64::from(instance.new.credential_warning_seconds) * 1_000);
    instance.credential.and_then(|c| c.expires_at).is_some_and(|at| at <= warned_until)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::model::{CredentialInfo, NewInstance};

    fn instance() -> Instance {
        let new = NewInstance { silent_after_seconds: 60, credential_warning_seconds: 10, ..NewInstance::default() };
        Instance { new, created_at: 1_000, ..Instance::default() }
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
    fn a_credential_is_warned_of_from_the_very_start_of_the_warning_time_on() {
        let expires = |expires_at| Instance {
            credential: Some(CredentialInfo { version: 1, deposited_at: 1_000, expires_at }),
            ..instance()
        };
        assert_eq!(evaluate(&expires(Some(20_001)), 10_000), State::Active);
        assert_eq!(evaluate(&expires(Some(20_000)), 10_000), State::CredentialExpiring);
        assert_eq!(evaluate(&expires(Some(5_000)), 10_000), State::CredentialExpiring);
        assert_eq!(evaluate(&expires(None), 10_000), State::Active);
        // It goes before silence and behind a refusal.
        assert_eq!(evaluate(&expires(Some(20_000)), 900_000), State::CredentialExpiring);
        let refused = Instance { access_error: true, ..expires(Some(0)) };
        assert_eq!(evaluate(&refused, 10_000), State::AccessError);
    }

    #[test]
    fn the_worst_state_wins() {
        let refused = Instance { access_error: true, ..instance() };
        assert_eq!(evaluate(&refused, 900_000), State::AccessError);
        let disabled = Instance { disabled_at: Some(1), ..refused };
        assert_eq!(evaluate(&disabled, 900_000), State::Disabled);
    }
}
