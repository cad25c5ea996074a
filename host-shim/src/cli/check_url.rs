//! `host-shim check-url`: what the policies say of an address; no connection is made and no name is looked up.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::process::ExitCode;

use serde_json::json;

use super::output::{self, CliError};
use super::setup::Common;
use crate::egress::resolver::{AddressRules, judge_all};
use crate::egress::url::{TargetHost, UrlExceptions, judge};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Addresses, taken as they are written.
    #[arg(required = true, value_name = "URL")]
    urls: Vec<String>,
    /// What a name resolves to: NAME=ADDRESS[,ADDRESS…]; * stands for any name.
    #[arg(long, value_name = "NAME=ADDR[,ADDR…]")]
    resolve: Vec<String>,
}

type Answers = BTreeMap<String, Vec<IpAddr>>;

pub(super) fn run(common: &Common, arguments: &Arguments) -> Result<ExitCode, CliError> {
    let answers = answers(&arguments.resolve)?;
    for url in &arguments.urls {
        let (verdict, reason, addresses) = explain(url, &answers);
        if common.json {
            output::json_line(&json!({"url": url, "verdict": verdict, "reason": reason, "addresses": addresses}))?;
        } else {
            output::line(&format!("{verdict}: {url}: {reason}"))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn answers(given: &[String]) -> Result<Answers, CliError> {
    let mut answers = Answers::new();
    for text in given {
        let bad = || CliError::Usage(format!("--resolve {text:?} is not of the form NAME=ADDRESS[,ADDRESS…]"));
        let (name, list) = text.split_once('=').ok_or_else(bad)?;
        let parsed: Result<Vec<IpAddr>, _> = list.split(',').map(|a| a.trim().parse()).collect();
        answers.insert(name.trim_end_matches('.').to_ascii_lowercase(), parsed.map_err(|_| bad())?);
    }
    Ok(answers)
}

/// The verdict, its reason and the addresses it was made from.
fn explain(url: &str, answers: &Answers) -> (&'static str, String, Vec<IpAddr>) {
    let target = match judge(url, &UrlExceptions::default()) {
        Ok(target) => target,
        Err(refusal) => return ("deny", refusal.to_string(), Vec::new()),
    };
    let candidates = match target.host() {
        TargetHost::Address(address) => vec![*address],
        TargetHost::Name(name) => match answers.get(name).or_else(|| answers.get("*")) {
            Some(addresses) => addresses.clone(),
            None => {
                return (
                    "unresolved",
                    "the name was not resolved; give its addresses with --resolve".to_owned(),
                    Vec::new(),
                );
            }
        },
    };
    match judge_all(candidates.clone(), target.port(), AddressRules::default()) {
        Ok(_) => ("allow", "every rule allows it".to_owned(), candidates),
        Err(failure) => ("deny", failure.to_string(), candidates),
    }
}
