//! `host-shim check-url`: what the policies say of an address, and what to configure where it is meant. No connection is
//! made; names are looked up only when asked for.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::{Value, json};

use super::output::{self, CliError};
use super::setup::{self, Common};
use crate::egress::client::{Client, Rules};
use crate::egress::error::Failure;
use crate::egress::resolver::judge_all;
use crate::egress::url::{Target, TargetHost, judge};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Addresses, taken as they are written.
    #[arg(required = true, value_name = "URL")]
    urls: Vec<String>,
    /// What a name resolves to: NAME=ADDRESS[,ADDRESS…]; * stands for any name.
    #[arg(long, value_name = "NAME=ADDR[,ADDR…]")]
    resolve: Vec<String>,
    /// Ask the DNS for names that --resolve does not give.
    #[arg(long)]
    lookup: bool,
    /// File with the pin's configuration, a JSON object: what is open beyond public addresses.
    #[arg(long, value_name = "FILE")]
    configuration: Option<PathBuf>,
}

type Answers = BTreeMap<String, Vec<IpAddr>>;

/// What is said of one address.
struct Explained {
    verdict: &'static str,
    /// The rule by its stable name.
    rule: &'static str,
    reason: String,
    addresses: Vec<IpAddr>,
    /// The address that was refused and its range.
    refused: Option<Value>,
    /// What to configure where it is meant.
    advice: Option<String>,
}

pub(super) async fn run(common: &Common, arguments: &Arguments) -> Result<ExitCode, CliError> {
    let answers = answers(&arguments.resolve)?;
    let (rules, _) = setup::rules(arguments.configuration.as_deref(), false)?;
    let client = if arguments.lookup { Some(setup::client(setup::USER_AGENT, None)?) } else { None };
    for url in &arguments.urls {
        let said = explain(url, &answers, &rules, client.as_ref()).await;
        if common.json {
            let mut line = json!({
                "url": url, "verdict": said.verdict, "rule": said.rule, "reason": said.reason,
                "addresses": said.addresses,
            });
            for (name, value) in [("refused", said.refused), ("advice", said.advice.map(Value::String))] {
                if let (Some(line), Some(value)) = (line.as_object_mut(), value) {
                    line.insert(name.to_owned(), value);
                }
            }
            output::json_line(&line)?;
        } else {
            output::line(&format!("{}: {url}: {}", said.verdict, said.reason))?;
            if let Some(advice) = said.advice {
                output::line(&format!("  {advice}"))?;
            }
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

/// The addresses of a target by what was given; `None` where only the DNS can tell.
fn given(target: &Target, answers: &Answers) -> Option<Vec<IpAddr>> {
    match target.host() {
        TargetHost::Address(address) => Some(vec![*address]),
        TargetHost::Name(name) => answers.get(name).or_else(|| answers.get("*")).cloned(),
    }
}

async fn explain(url: &str, answers: &Answers, rules: &Rules, client: Option<&Client>) -> Explained {
    let target = match judge(url, rules) {
        Ok(target) => target,
        Err(refusal) => return refused(&Failure::Url(refusal), Vec::new()),
    };
    match (given(&target, answers), client) {
        (Some(addresses), _) => match judge_all(addresses.clone(), target.port(), rules) {
            Ok(_) => allowed(addresses),
            Err(failure) => refused(&failure, addresses),
        },
        (None, Some(client)) => match client.resolve(&target, rules).await {
            Ok(judged) => allowed(judged.addresses().iter().map(|a| a.ip()).collect()),
            Err(failure @ (Failure::Dns(_) | Failure::Timeout(_))) => unresolved(failure.to_string()),
            Err(failure) => refused(&failure, Vec::new()),
        },
        (None, None) => {
            unresolved("the name was not resolved; give its addresses with --resolve, or ask with --lookup".to_owned())
        }
    }
}

fn allowed(addresses: Vec<IpAddr>) -> Explained {
    let reason = "every rule allows it".to_owned();
    Explained { verdict: "allow", rule: "none", reason, addresses, refused: None, advice: None }
}

fn unresolved(reason: String) -> Explained {
    Explained { verdict: "unresolved", rule: "resolution", reason, addresses: Vec::new(), refused: None, advice: None }
}

fn refused(failure: &Failure, addresses: Vec<IpAddr>) -> Explained {
    let refused = match failure {
        Failure::Address { address, range } => Some(json!({
            "address": address, "range": range.network, "name": range.name, "source": range.source,
        })),
        _ => None,
    };
    Explained {
        verdict: "deny",
        rule: failure.rule(),
        reason: failure.to_string(),
        addresses,
        refused,
        advice: failure.advice(),
    }
}
