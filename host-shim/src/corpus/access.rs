//! Who may do what: scopes and corpora of a key, without I/O.
//!
//! `connectors:admin` includes `connectors:write`, which includes `connectors:read`. A key that is bound to corpora
//! knows of no others: what belongs to them does not exist for it.

use std::collections::BTreeSet;

/// One thing that a key may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// See connectors, their runs and kinds.
    ConnectorsRead,
    /// Create, change, run, pause and disable connectors.
    ConnectorsWrite,
    /// Make corpora; see what only an operator may: refused addresses, ranges, hosts.
    ConnectorsAdmin,
    /// Read records and versions.
    ContentRead,
    /// Read the change log.
    ChangesRead,
}

impl Scope {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::ConnectorsRead, Self::ConnectorsWrite, Self::ConnectorsAdmin, Self::ContentRead, Self::ChangesRead];

    /// Name on the command line, in the store and in errors.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ConnectorsRead => "connectors:read",
            Self::ConnectorsWrite => "connectors:write",
            Self::ConnectorsAdmin => "connectors:admin",
            Self::ContentRead => "content:read",
            Self::ChangesRead => "changes:read",
        }
    }

    /// The scope of a name.
    #[must_use]
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|s| s.name() == name)
    }

    fn includes(self, other: Self) -> bool {
        self == other
            || matches!(
                (self, other),
                (Self::ConnectorsAdmin, Self::ConnectorsWrite | Self::ConnectorsRead)
                    | (Self::ConnectorsWrite, Self::ConnectorsRead)
            )
    }
}

/// Whoever calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    /// The key's identifier, or what stands in for it.
    pub key_id: String,
    /// What it may do.
    pub scopes: BTreeSet<Scope>,
    /// Corpora that it may know of; `None` means all.
    pub corpora: Option<BTreeSet<String>>,
}

impl Principal {
    /// Whoever owns the data folder.
    #[must_use]
    pub fn operator() -> Self {
        Self { key_id: "operator".to_owned(), scopes: Scope::ALL.into_iter().collect(), corpora: None }
    }

    /// Whether it may do something.
    #[must_use]
    pub fn may(&self, scope: Scope) -> bool {
        self.scopes.iter().any(|has| has.includes(scope))
    }

    /// Whether it may know of a corpus.
    #[must_use]
    pub fn sees(&self, corpus_id: &str) -> bool {
        self.corpora.as_ref().is_none_or(|corpora| corpora.contains(corpus_id))
    }

    /// The corpora of a list: the one asked for, else all that it may know of. `None` means all there are.
    #[must_use]
    pub fn within(&self, asked: Option<String>) -> Option<Vec<String>> {
        match (asked, &self.corpora) {
            (Some(one), _) => Some(vec![one]),
            (None, Some(corpora)) => Some(corpora.iter().cloned().collect()),
            (None, None) => None,
        }
    }
}

/// Scopes from their names joined by blanks; names that are none are left out.
#[must_use]
pub fn scopes(text: &str) -> BTreeSet<Scope> {
    text.split_ascii_whitespace().filter_map(Scope::of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wider_scope_includes_the_narrower_ones_of_its_family() {
        let who = |text: &str| Principal { key_id: "k".into(), scopes: scopes(text), corpora: None };
        for (has, may, may_not) in [
            ("connectors:admin", "connectors:read", "content:read"),
            ("connectors:admin", "connectors:write", "changes:read"),
            ("connectors:write", "connectors:read", "connectors:admin"),
            ("content:read", "content:read", "connectors:read"),
            ("changes:read unknown", "changes:read", "content:read"),
        ] {
            assert!(who(has).may(Scope::of(may).unwrap()), "{has} {may}");
            assert!(!who(has).may(Scope::of(may_not).unwrap()), "{has} {may_not}");
        }
        assert!(Scope::ALL.into_iter().all(|s| Scope::of(s.name()) == Some(s) && Principal::operator().may(s)));
    }

    #[test]
    fn a_bound_key_knows_of_its_corpora_alone() {
        let bound = Principal { corpora: Some(["c_1".to_owned()].into()), ..Principal::operator() };
        assert!(bound.sees("c_1") && !bound.sees("c_2"));
        assert_eq!(bound.within(None), Some(vec!["c_1".to_owned()]));
        assert_eq!(Principal::operator().within(None), None);
    }
}
