//! `host-shim render`: stored markup in another form.

use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::json;

use super::output::{self, CliError};
use super::setup::{self, Common};
use crate::engine::plugin::{Form, Fragment, FragmentKind};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The wanted form; several, each named by its own `--form`, come of one reading.
    #[arg(long = "form", value_enum, required = true)]
    forms: Vec<FormName>,
    /// How the files are to be read.
    #[arg(long, value_enum, default_value = "html")]
    kind: KindName,
    /// Address that relative links start from; without it they are left out.
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,
    /// Files with HTML.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum FormName {
    /// Plain text.
    Text,
    /// CommonMark with the tables of GFM.
    Markdown,
    /// The semantic vocabulary of the entry format.
    EntryXml,
    /// HTML that a page may show.
    SafeHtml,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum KindName {
    /// HTML, read as browsers read it.
    Html,
    /// The children of an XHTML element.
    Xhtml,
    /// Plain text: nothing in it is markup.
    Text,
}

pub(super) async fn run(common: &Common, arguments: Arguments) -> Result<ExitCode, CliError> {
    let plugin = common.load("{}").await?;
    let forms: Vec<_> = arguments
        .forms
        .iter()
        .map(|form| match form {
            FormName::Text => Form::Text,
            FormName::Markdown => Form::Markdown,
            FormName::EntryXml => Form::EntryXml,
            FormName::SafeHtml => Form::SafeHtml,
        })
        .collect();
    let kind = match arguments.kind {
        KindName::Html => FragmentKind::Html,
        KindName::Xhtml => FragmentKind::Xhtml,
        KindName::Text => FragmentKind::Text,
    };
    for file in &arguments.files {
        let fragment = Fragment { source: setup::read_text(file)?, kind, base_url: arguments.base_url.clone() };
        let rendered = plugin.render(vec![fragment], &forms).await?.into_iter().flatten();
        for (form, rendered) in arguments.forms.iter().filter_map(clap::ValueEnum::to_possible_value).zip(rendered) {
            if common.json {
                output::json_line(&json!({
                    "file": file.display().to_string(), "form": form.get_name(), "output": rendered.output,
                    "truncated": rendered.truncated, "degraded": rendered.degraded,
                }))?;
            } else {
                output::line(&rendered.output)?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}
