//! `host-shim certify`: the contract checks on a component, as a report.

use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::json;

use super::output::{self, CliError};
use super::setup::{self, Common};
use crate::certify::certify;
use crate::certify::fixture::{built_in, read_folder};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The component's file.
    #[arg(value_name = "PLUGIN")]
    file: PathBuf,
    /// Folder with fixtures (NAME.fixture.json) and documents [default: built-in feeds].
    #[arg(long, value_name = "DIR")]
    fixtures: Option<PathBuf>,
}

pub(super) async fn run(common: &Common, arguments: &Arguments) -> Result<ExitCode, CliError> {
    let plugin = match setup::load(&arguments.file, "{}").await {
        Ok(plugin) => plugin,
        Err(CliError::Pin(error)) => {
            // A component that cannot be loaded fails its first check, by the code of the reason.
            if common.json {
                let check = json!({"check": "load", "subject": "component", "ok": false, "reason": format!("{}: {error}", error.code())});
                output::json_line(&check)?;
                output::json_line(&json!({"certified": false, "passed": 0, "failed": 1}))?;
            } else {
                output::line(&format!("FAIL load            {}: {error}", error.code()))?;
                output::line("not certified: 0 passed, 1 failed")?;
            }
            return Ok(ExitCode::FAILURE);
        }
        Err(error) => return Err(error),
    };
    let kind = plugin.descriptor().kinds.first().map(|k| k.name.clone()).unwrap_or_default();
    let fixtures = match &arguments.fixtures {
        Some(folder) => read_folder(folder, &kind).map_err(|e| CliError::Usage(e.to_string()))?,
        None => built_in(&kind),
    };
    let checks = certify(&plugin, &fixtures).await;
    let failed = checks.iter().filter(|c| !c.ok).count();
    let passed = checks.len() - failed;
    for check in &checks {
        if common.json {
            output::json_line(check)?;
            continue;
        }
        let mark = if check.ok { "ok  " } else { "FAIL" };
        let reason = check.reason.as_ref().map(|r| format!(": {r}")).unwrap_or_default();
        output::line(&format!("{mark} {:<16} {}{reason}", check.check, check.subject))?;
    }
    if common.json {
        output::json_line(&json!({"certified": failed == 0, "passed": passed, "failed": failed}))?;
    } else {
        let verdict = if failed == 0 { "certified" } else { "not certified" };
        output::line(&format!("{verdict}: {passed} passed, {failed} failed ({})", plugin.digest()))?;
    }
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
