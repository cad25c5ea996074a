//! A component that may be called: pinned, inspected, compiled, described.
//!
//! Owns the way from a pin to a [`Plugin`] and the calls of the contract. Each call is a store of its own; what a guest
//! does in one costs that one.

use std::sync::Arc;
use std::time::Duration;

use wasmtime::component::{HasSelf, Linker};

use super::answer::{self, Failure, Page};
use super::bindings::exports::corpus::connector::{connector as wit, content};
use super::bindings::{ConnectorPlugin, ConnectorPluginPre};
use super::descriptor::Descriptor;
use super::error::{CallError, PinError};
use super::host::State;
use super::image::{Cache, Image};
use super::inspect;
use super::pin::{self, Digest, Pin};
use super::runtime::Runtime;
use super::sandbox::Sandbox;
pub use super::sandbox::Usage;
use super::upstream::{Nowhere, Upstream};

/// What a call is about.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Invocation {
    /// Connector instance.
    pub instance_id: String,
    /// Kind.
    pub kind: String,
    /// Corpus.
    pub corpus_id: String,
    /// Source namespace.
    pub source_namespace: String,
    /// Config of the instance, JSON.
    pub config: String,
    /// What the last page returned.
    pub checkpoint: Option<String>,
    /// The clock, RFC 3339 in UTC.
    pub now: String,
    /// Page of the run.
    pub page_in_run: u32,
    /// Requests since midnight UTC.
    pub reads_today: u32,
    /// A credential is at hand.
    pub has_credential: bool,
    /// One request without validators.
    pub unconditional: bool,
}

/// How a stored fragment is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FragmentKind {
    /// HTML.
    Html,
    /// Children of an XHTML element.
    Xhtml,
    /// Plain text.
    Text,
}

/// A fragment to render.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fragment {
    /// The markup.
    pub source: String,
    /// How to read it.
    pub kind: FragmentKind,
    /// Where relative links start.
    pub base_url: Option<String>,
}

/// A form of rendering.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Plain text.
    Text,
    /// CommonMark with the tables of GFM.
    Markdown,
    /// The semantic vocabulary of the entry format.
    EntryXml,
    /// HTML that a page may show.
    SafeHtml,
}

/// A rendered fragment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendered {
    /// The result.
    pub output: String,
    /// It was cut.
    pub truncated: bool,
    /// A part of its structure became text.
    pub degraded: bool,
}

/// A component, ready to be called. Cheap to clone.
#[derive(Clone)]
pub struct Plugin {
    runtime: Runtime,
    pre: ConnectorPluginPre<State>,
    digest: Digest,
    configuration: String,
    descriptor: Arc<Descriptor>,
}

impl std::fmt::Debug for Plugin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Plugin").field("id", &self.descriptor.id).field("digest", &self.digest).finish_non_exhaustive()
    }
}

impl Plugin {
    /// Loads the component of a pin: digest, surface, compilation, descriptor, in this order.
    ///
    /// # Errors
    /// The first of these that fails, as one sentence.
    pub async fn load(runtime: &Runtime, pin: &Pin, cache: Option<&Cache>) -> Result<Self, PinError> {
        let (digest, bytes) = pin::read(pin)?;
        inspect::check(&inspect::surface(&bytes)?)?;
        let image = {
            let (runtime, cache) = (runtime.clone(), cache.cloned());
            // Compiling takes a second of computing, which the executor's threads are not for.
            tokio::task::spawn_blocking(move || Image::obtain(runtime.engine(), &digest, &bytes, cache.as_ref()))
                .await
                .map_err(|e| PinError::Compile(e.to_string()))??
        };
        let mut linker: Linker<State> = Linker::new(runtime.engine());
        let types = |e: wasmtime::Error| PinError::Types(e.to_string());
        ConnectorPlugin::add_to_linker::<_, HasSelf<_>>(&mut linker, |state| state).map_err(types)?;
        let instance = linker.instantiate_pre(image.component()).map_err(types)?;
        let pre = ConnectorPluginPre::new(instance).map_err(types)?;
        let (described, _) = Sandbox::call(runtime, &pre, Arc::new(Nowhere), runtime.limits().wall, |plugin, store| {
            Box::pin(async move { plugin.corpus_connector_connector().call_describe(store).await })
        })
        .await;
        let descriptor = Arc::new(Descriptor::check(described?)?);
        Ok(Self { runtime: runtime.clone(), pre, digest, configuration: pin.configuration.clone(), descriptor })
    }

    /// The digest of the component's file.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// What it is.
    #[must_use]
    pub fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    /// What it is told.
    #[must_use]
    pub fn configuration(&self) -> &str {
        &self.configuration
    }

    /// The same component told another configuration.
    #[must_use]
    pub fn with_configuration(&self, configuration: String) -> Self {
        Self { configuration, ..self.clone() }
    }

    /// The time that the descriptor gives a call.
    fn wall(&self) -> Duration {
        Duration::from_millis(u64::from(self.descriptor.limits.timeout_ms))
    }

    fn invocation(&self, call: &Invocation) -> wit::Invocation {
        wit::Invocation {
            instance_id: call.instance_id.clone(),
            kind: call.kind.clone(),
            corpus_id: call.corpus_id.clone(),
            source_namespace: call.source_namespace.clone(),
            configuration: self.configuration.clone(),
            config: call.config.clone(),
            checkpoint: call.checkpoint.clone(),
            now: call.now.clone(),
            page_in_run: call.page_in_run,
            reads_today: call.reads_today,
            has_credential: call.has_credential,
            unconditional: call.unconditional,
        }
    }

    /// One page of a run: the guest's page or its failure, both checked; or why there is neither.
    pub async fn fetch(
        &self,
        call: &Invocation,
        upstream: Arc<dyn Upstream>,
    ) -> (Result<Result<Page, Failure>, CallError>, Usage) {
        let invocation = self.invocation(call);
        let (result, usage) = Sandbox::call(&self.runtime, &self.pre, upstream, self.wall(), |plugin, store| {
            Box::pin(async move { plugin.corpus_connector_connector().call_fetch(store, &invocation).await })
        })
        .await;
        let checked = result.and_then(|answer| match answer {
            Ok(page) => answer::page(page, &self.descriptor, call.checkpoint.as_deref()).map(Ok),
            Err(failure) => answer::failure(failure).map(Err),
        });
        (checked, usage)
    }

    /// Whether the source accepts the credential.
    ///
    /// # Errors
    /// Where the call brought no answer; the inner failure is the source's refusal.
    pub async fn check_credential(
        &self,
        call: &Invocation,
        upstream: Arc<dyn Upstream>,
    ) -> Result<Result<Option<String>, Failure>, CallError> {
        let invocation = self.invocation(call);
        let (result, _) = Sandbox::call(&self.runtime, &self.pre, upstream, self.wall(), |plugin, store| {
            Box::pin(async move { plugin.corpus_connector_connector().call_check_credential(store, &invocation).await })
        })
        .await;
        match result? {
            Ok(status) => Ok(Ok(status.expires_at)),
            Err(failure) => answer::failure(failure).map(Err),
        }
    }

    /// Renders stored fragments in some forms: for each fragment a rendering in each form, in the order of the call.
    ///
    /// # Errors
    /// Where the call brought no answer, or not one result for each fragment and form.
    pub async fn render(&self, fragments: Vec<Fragment>, forms: &[Form]) -> Result<Vec<Vec<Rendered>>, CallError> {
        let count = fragments.len();
        let fragments: Vec<content::Fragment> = fragments
            .into_iter()
            .map(|f| content::Fragment {
                source: f.source,
                kind: match f.kind {
                    FragmentKind::Html => content::FragmentKind::Html,
                    FragmentKind::Xhtml => content::FragmentKind::Xhtml,
                    FragmentKind::Text => content::FragmentKind::Text,
                },
                base_url: f.base_url,
            })
            .collect();
        let wanted: Vec<_> = forms
            .iter()
            .map(|form| match form {
                Form::Text => content::Form::Text,
                Form::Markdown => content::Form::Markdown,
                Form::EntryXml => content::Form::EntryXml,
                Form::SafeHtml => content::Form::SafeHtml,
            })
            .collect();
        let (result, _) = Sandbox::call(&self.runtime, &self.pre, Arc::new(Nowhere), self.wall(), |plugin, store| {
            Box::pin(async move { plugin.corpus_connector_content().call_render(store, &fragments, &wanted).await })
        })
        .await;
        let rendered = result?;
        if rendered.len() != count || rendered.iter().any(|each| each.len() != forms.len()) {
            return Err(CallError::invalid("invalid_rendering", "not one result for each fragment and form"));
        }
        let each = |r: content::Rendered| Rendered { output: r.output, truncated: r.truncated, degraded: r.degraded };
        Ok(rendered.into_iter().map(|of_one| of_one.into_iter().map(each).collect()).collect())
    }
}
