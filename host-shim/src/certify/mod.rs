//! Certification: the checks that a component must pass before it is worth pinning.
//!
//! Owns the checks and their names; they are those of Quivr's `plugin test` on a connector, asked of a component. No
//! network is involved: every request gets a document at hand. A component that fails on one check is asked the others
//! all the same, so that its author sees everything at once.

pub mod fixture;

use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;

use crate::engine::answer::{Class, Page};
use crate::engine::plugin::{Invocation, Plugin};
use crate::engine::upstream::{Request, Response, Sending, Upstream};
use crate::runner::{RunError, Session};
use fixture::{Expectation, Fixture};

/// What came of one check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Name of the check.
    pub check: &'static str,
    /// What it was made on: a fixture, a status.
    pub subject: String,
    /// Whether it held.
    pub ok: bool,
    /// Why not: a code and a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Statuses and the class that each must become.
const STATUSES: [(u16, Class); 8] = [
    (401, Class::Access),
    (403, Class::Access),
    (410, Class::Access),
    (404, Class::Source),
    (418, Class::Source),
    (429, Class::Transient),
    (500, Class::Transient),
    (503, Class::Transient),
];

/// Header fields that a component has no business to set.
const FORBIDDEN: [&str; 5] = ["authorization", "cookie", "host", "user-agent", "proxy-authorization"];

/// Answers every request with one response and remembers what was asked.
#[derive(Debug)]
struct Recording {
    response: Response,
    requests: Mutex<Vec<Request>>,
}

impl Recording {
    fn new(response: Response) -> Arc<Self> {
        Arc::new(Self { response, requests: Mutex::default() })
    }

    fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Upstream for Recording {
    fn send(&self, request: Request) -> Sending<'_> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).push(request);
        Box::pin(async { Ok(self.response.clone()) })
    }
}

/// A report in the making.
struct Report {
    checks: Vec<Check>,
}

impl Report {
    fn note(&mut self, check: &'static str, subject: &str, outcome: Result<(), String>) {
        let reason = outcome.err();
        self.checks.push(Check { check, subject: subject.to_owned(), ok: reason.is_none(), reason });
    }
}

/// The pages of one run.
struct Run {
    pages: Vec<Page>,
    error: Option<RunError>,
}

impl Run {
    fn checkpoint(&self) -> Option<String> {
        self.pages.last().map(|p| p.checkpoint.clone())
    }
}

/// A sentence for an error that names its rule where there is one.
fn sentence(error: &RunError) -> String {
    match error {
        RunError::Component(call) => match call.reason() {
            Some(reason) => format!("{} ({reason}): {call}", call.code()),
            None => format!("{}: {call}", call.code()),
        },
        RunError::Source(failure) => format!("{}: {}", failure.code, failure.message),
    }
}

async fn run(plugin: &Plugin, call: &Invocation, upstream: Arc<dyn Upstream>) -> Run {
    let mut session = Session::new(plugin.clone(), upstream, call.clone());
    let mut run = Run { pages: Vec::new(), error: None };
    while let Some(page) = session.next().await {
        match page {
            Ok(page) => run.pages.push(page),
            Err(error) => run.error = Some(error),
        }
    }
    run
}

/// Makes every check on a component that was loaded: its digest, imports and descriptor hold already.
pub async fn certify(plugin: &Plugin, fixtures: &[Fixture]) -> Vec<Check> {
    let mut report = Report { checks: Vec::new() };
    report.note("imports", "component", Ok(()));
    report.note("descriptor", &plugin.descriptor().id, Ok(()));
    let mut sound = None;
    for fixture in fixtures {
        let passed = on_fixture(plugin, fixture, &mut report).await;
        if passed && !matches!(fixture.expect, Expectation::Error(..)) {
            sound = sound.or(Some(fixture));
        }
    }
    // What follows varies one call that works; where none does, enough is said.
    if let Some(fixture) = sound {
        on_statuses(plugin, fixture, &mut report).await;
        on_invalid(plugin, fixture, &mut report).await;
        on_garbage(plugin, fixture, &mut report).await;
    }
    report.checks
}

/// The checks of one fixture; whether its run came out as expected and made a request.
async fn on_fixture(plugin: &Plugin, fixture: &Fixture, report: &mut Report) -> bool {
    let plugin = plugin.with_configuration(fixture.configuration.clone());
    let name = fixture.name.as_str();
    let call = fixture.invocation();
    let upstream = Recording::new(fixture.response.clone());
    let first = run(&plugin, &call, Arc::clone(&upstream) as _).await;
    let outcome = fixture.expect.holds(&first.pages, first.error.as_ref());
    let passed = outcome.is_ok();
    let with_error = |why: String| match &first.error {
        Some(error) => format!("{why}: {}", sentence(error)),
        None => why,
    };
    report.note("invoke", name, outcome.map_err(with_error));
    report.note("credentials", name, no_secret_of_its_own(&upstream.requests(), fixture.has_credential));
    if first.error.is_some() {
        return passed;
    }
    report.note("checkpoint", name, moves(&first.pages));
    let second = run(&plugin, &call, Recording::new(fixture.response.clone())).await;
    let same = second.pages == first.pages;
    report.note(
        "deterministic",
        name,
        same.then_some(()).ok_or_else(|| "the same input gave another answer".to_owned()),
    );
    // A later run from the last checkpoint, an hour on, so that no wait is left.
    let later = Invocation { checkpoint: first.checkpoint(), now: fixture.later(), ..call };
    let resumed = run(&plugin, &later, Recording::new(fixture.response.clone())).await;
    let known: Vec<(&str, &str)> =
        first.pages.iter().flat_map(|p| &p.items).map(|i| (i.record_key.as_str(), i.revision.as_str())).collect();
    let repeated = resumed.pages.iter().flat_map(|p| &p.items).any(|i| known.contains(&(&i.record_key, &i.revision)));
    let outcome = match (&resumed.error, repeated) {
        (Some(error), _) => Err(format!("a run from the last checkpoint failed: {}", sentence(error))),
        (None, true) => Err("checkpoint_not_honoured: a run from the last checkpoint sent items again".to_owned()),
        (None, false) => Ok(()),
    };
    report.note("resume", name, outcome);
    passed && first.pages.iter().all(|p| !p.not_due)
}

/// Every page that promises another one moves the checkpoint.
fn moves(pages: &[Page]) -> Result<(), String> {
    let stalled = pages.windows(2).any(|pair| match pair {
        [a, b] => a.more && a.checkpoint == b.checkpoint,
        _ => false,
    });
    if stalled { Err("stalled_checkpoint: two pages of a run have the same checkpoint".to_owned()) } else { Ok(()) }
}

/// The secret never enters the sandbox; what a component can do wrong is to make one up, or to ask for it unasked.
fn no_secret_of_its_own(requests: &[Request], has_credential: bool) -> Result<(), String> {
    for request in requests {
        let forged = request.headers.iter().find(|(n, _)| FORBIDDEN.contains(&n.to_ascii_lowercase().as_str()));
        if let Some((name, _)) = forged {
            return Err(format!("a request sets the header field {}, which is the host's", name.to_ascii_lowercase()));
        }
        if request.authenticate && !has_credential {
            return Err("a request asks for a credential that the instance does not have".to_owned());
        }
    }
    Ok(())
}

async fn on_statuses(plugin: &Plugin, fixture: &Fixture, report: &mut Report) {
    for (status, class) in STATUSES {
        let response = Response { status, body: Vec::new(), ..fixture.response.clone() };
        let run = run(plugin, &fixture.invocation(), Recording::new(response)).await;
        let outcome = match run.error {
            Some(RunError::Source(failure)) if failure.class == class => Ok(()),
            Some(RunError::Source(failure)) => {
                Err(format!("wrong_error_class: {} for class {}", failure.class.name(), class.name()))
            }
            Some(error) => Err(sentence(&error)),
            None => Err("a refused request counted as a success".to_owned()),
        };
        report.note("error_class", &format!("status {status}"), outcome);
    }
    let unchanged = Response { status: 304, body: Vec::new(), ..fixture.response.clone() };
    let run = run(plugin, &fixture.invocation(), Recording::new(unchanged)).await;
    let outcome = match (&run.error, run.pages.iter().all(|p| p.items.is_empty() && !p.more)) {
        (Some(error), _) => Err(sentence(error)),
        (None, false) => Err("a response without a document brought items".to_owned()),
        (None, true) => Ok(()),
    };
    report.note("not_modified", "status 304", outcome);
    let call = Invocation { has_credential: true, ..fixture.invocation() };
    for status in [200, 401, 403] {
        let response = Response { status, ..fixture.response.clone() };
        let outcome = match plugin.check_credential(&call, Recording::new(response)).await {
            Ok(Ok(_)) if status == 200 => Ok(()),
            Ok(Err(failure)) if status != 200 && failure.class == Class::Access => Ok(()),
            Ok(_) => Err("the answer does not say what the status says".to_owned()),
            Err(error) => Err(sentence(&error.into())),
        };
        report.note("check_credential", &format!("status {status}"), outcome);
    }
}

/// Invocations that a connector must refuse, with an answer and not with a trap.
async fn on_invalid(plugin: &Plugin, fixture: &Fixture, report: &mut Report) {
    let good = fixture.invocation();
    let cases = [
        ("config is not JSON", Invocation { config: "{".to_owned(), ..good.clone() }),
        ("config has an unknown member", Invocation { config: "{\"no_such_member\":1}".to_owned(), ..good.clone() }),
        ("kind is not declared", Invocation { kind: "no_such_kind".to_owned(), ..good.clone() }),
        ("checkpoint is not one", Invocation { checkpoint: Some("not a checkpoint".to_owned()), ..good.clone() }),
        ("clock is no instant", Invocation { now: "soon".to_owned(), ..good }),
    ];
    for (what, call) in cases {
        let run = run(plugin, &call, Recording::new(fixture.response.clone())).await;
        let outcome = match run.error {
            Some(RunError::Source(failure)) if failure.class == Class::Source => Ok(()),
            Some(error) => Err(sentence(&error)),
            None => Err("it was taken for a good one".to_owned()),
        };
        report.note("invalid_request", what, outcome);
    }
}

/// Documents that are none: an answer is wanted, whatever it says.
async fn on_garbage(plugin: &Plugin, fixture: &Fixture, report: &mut Report) {
    let deep = format!("<rss>{}", "<a>".repeat(100_000));
    let cases: [(&str, Vec<u8>); 5] = [
        ("empty", Vec::new()),
        ("zeros", vec![0; 4_096]),
        ("every byte", (0..=255).collect()),
        ("deep nesting", deep.into_bytes()),
        ("open brackets", vec![b'['; 100_000]),
    ];
    for (what, body) in cases {
        let response = Response { status: 200, body, ..fixture.response.clone() };
        let run = run(plugin, &fixture.invocation(), Recording::new(response)).await;
        let outcome = match run.error {
            Some(RunError::Component(error)) => Err(sentence(&error.into())),
            _ => Ok(()),
        };
        report.note("robust", what, outcome);
    }
}
