//! Pins: what is refused before it is run, each with one clear sentence.

use std::fs;
use std::path::PathBuf;

use host_shim::engine::error::PinError;
use host_shim::engine::limits::Limits;
use host_shim::engine::pin::{Digest, Pin};
use host_shim::engine::plugin::Plugin;
use host_shim::engine::runtime::Runtime;

use crate::support::{PROGRAM, component, connector, pin};

async fn load(pin: &Pin) -> Result<Plugin, PinError> {
    Plugin::load(&Runtime::new(Limits::DEFAULT).unwrap(), pin, None).await
}

/// Writes a file beside the program and pins it.
fn written(name: &str, bytes: &[u8]) -> Pin {
    let path = PathBuf::from(PROGRAM).with_file_name(format!("test-{name}.wasm"));
    fs::write(&path, bytes).unwrap();
    Pin { path, sha256: None, configuration: "{}".into() }
}

/// The component with every occurrence of a text replaced by another of the same length.
fn patched(from: &str, to: &str) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let mut bytes = fs::read(component("connector.rss.wasm")).unwrap();
    let places: Vec<usize> =
        bytes.windows(from.len()).enumerate().filter(|(_, w)| *w == from.as_bytes()).map(|(i, _)| i).collect();
    assert!(!places.is_empty());
    for at in places {
        bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
    }
    bytes
}

#[tokio::test]
async fn the_digest_is_checked_before_anything_else() {
    let bytes = fs::read(component("connector.rss.wasm")).unwrap();
    let right = Pin { sha256: Some(Digest::of(&bytes)), ..pin("connector.rss.wasm") };
    assert_eq!(load(&right).await.unwrap().digest(), Digest::of(&bytes));
    // Bytes that are no component at all: the digest speaks first.
    let wrong = Pin { sha256: Some(Digest::of(b"another")), ..written("digest", b"no component") };
    let error = load(&wrong).await.unwrap_err();
    assert_eq!(error.code(), "plugin_digest_mismatch");
    assert!(error.to_string().contains(&Digest::of(b"no component").hex()));
}

#[tokio::test]
async fn what_does_not_fit_the_contract_is_refused_with_one_sentence() {
    let missing = Pin { path: "/nowhere/connector.wasm".into(), sha256: None, configuration: "{}".into() };
    for (pin, code) in [
        (missing, "plugin_unreadable"),
        (written("text", b"hello"), "plugin_not_a_component"),
        (
            written("import", &patched("corpus:connector/log@0.3.0", "corpus:connector/lag@0.3.0")),
            "plugin_import_refused",
        ),
        (written("version", &patched("@0.3.0", "@0.4.0")), "plugin_contract_version"),
    ] {
        let error = load(&pin).await.unwrap_err();
        assert_eq!(error.code(), code);
        assert!(!error.to_string().contains('\n'), "{error}");
    }
}

#[tokio::test]
async fn the_descriptor_says_what_the_connector_is() {
    let plugin = connector().await;
    let descriptor = plugin.descriptor();
    assert_eq!(descriptor.id, "connector.rss");
    assert_eq!(descriptor.kinds.len(), 1);
    let kind = descriptor.kind("rss").unwrap();
    assert_eq!((kind.default_interval_seconds, kind.credential_required), (300, false));
    let names: Vec<_> = descriptor.extensions.iter().map(|e| e.name.as_str()).collect();
    assert_eq!(names, ["connector.rss", "connector.rss.provenance", "connector.rss.more"]);
    assert_eq!((descriptor.limits.max_items, descriptor.limits.max_checkpoint_bytes), (250, 131_072));
}

/// The sandbox has a stack of its own, which no nesting may use up.
#[tokio::test]
async fn hostile_markup_is_rendered_in_the_sandbox() {
    use host_shim::engine::plugin::{Form, Fragment, FragmentKind};
    for source in [
        "<div><b>".repeat(90_000),
        "<table><tr><td>".repeat(50_000),
        "<p a=\"b\">x".repeat(70_000),
        "<".repeat(700_000),
    ] {
        let forms = [Form::Text, Form::Markdown, Form::EntryXml, Form::SafeHtml];
        let fragment = Fragment { source: format!("{source} end"), kind: FragmentKind::Html, base_url: None };
        let rendered = connector().await.render(vec![fragment], &forms).await.unwrap();
        for (form, rendered) in forms.iter().zip(&rendered[0]) {
            // Whatever is not there any more was cut, and says so.
            assert!(rendered.output.contains("end") || rendered.truncated, "{form:?}");
            assert!(!rendered.output.is_empty(), "{form:?}");
        }
    }
}

#[tokio::test]
async fn stored_markup_is_rendered_by_the_code_that_made_the_parts() {
    use host_shim::engine::plugin::{Form, Fragment, FragmentKind};
    let fragment = |source: &str, kind| Fragment { source: source.into(), kind, base_url: None };
    let rendered = connector()
        .await
        .render(
            vec![
                fragment("<p>a</p><p>b &amp; c</p>", FragmentKind::Html),
                fragment("a<br/>b", FragmentKind::Xhtml),
                fragment("<p>a</p>", FragmentKind::Text),
            ],
            &[Form::Text, Form::SafeHtml],
        )
        .await
        .unwrap();
    let outputs: Vec<Vec<_>> = rendered.iter().map(|each| each.iter().map(|r| r.output.as_str()).collect()).collect();
    assert_eq!(
        outputs,
        [["a\nb & c", "<p>a</p><p>b &amp; c</p>"], ["a\nb", "a<br>b"], ["<p>a</p>", "<p>&lt;p&gt;a&lt;/p&gt;</p>"]]
    );
}
