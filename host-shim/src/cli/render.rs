//! `host-shim render`: stored markup in another form.

use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::json;

use super::output::{self, CliError};
use super::setup::{self, Common};
use crate::engine::plugin::{Form, Fragment, FragmentKind};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The wanted form.
    #[arg(long, value_enum)]
    form: FormName,
    /// Address that relative links start from.
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
}

pub(super) async fn run(common: &Common, arguments: Arguments) -> Result<ExitCode, CliError> {
    let plugin = common.load("{}").await?;
    let FormName::Text = arguments.form;
    for file in &arguments.files {
        let fragment = Fragment {
            source: setup::read_text(file)?,
            kind: FragmentKind::Html,
            base_url: arguments.base_url.clone(),
        };
        for rendered in plugin.render(vec![fragment], Form::Text).await? {
            if common.json {
                output::json_line(&json!({
                    "file": file.display().to_string(), "output": rendered.output, "truncated": rendered.truncated,
                }))?;
            } else {
                output::line(&rendered.output)?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}
