//! A scripted upstream for feeds: a library that tests start in-process, and a binary for people.
//!
//! It speaks real HTTP over real sockets (wiremock). Each path is a [`Route`]: a document with its validators and with
//! what goes wrong on the way. The same server answers a control endpoint under `/_control/`, so that a script or a
//! person can edit a document and read what was requested. It has no clock: dates come from a counter. Beside it stand
//! what wiremock cannot be: a TLS front with an authority of its own, a server that stalls, drips and resets, and a name
//! server that answers by script.

mod caller;
mod control;
mod dns;
mod respond;
mod rough;
mod route;
mod tls;

use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use wiremock::matchers::any;
use wiremock::{Mock, MockServer};

pub use caller::{Answer, Caller};
pub use dns::{FakeDns, Question};
pub use rough::{RoughServer, Step};
pub use route::{Auth, Coding, EtagMode, Redirect, Route};
pub use tls::{Authority, Certificate, TlsFront};

/// Requests that are remembered; the oldest go first.
const MAX_RECORDED: usize = 100_000;

/// Why the server could not be started or told something.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// A folder or a file of it cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// What was to be read.
        path: String,
        /// Why it cannot.
        source: std::io::Error,
    },
    /// There is no such route.
    #[error("there is no route {0}; serve a document there first")]
    NoRoute(String),
    /// The text to be replaced does not stand in the document.
    #[error("the document at {0} does not contain the text to be replaced")]
    NotFound(String),
}

/// A request as it arrived.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Recorded {
    /// Method.
    pub method: String,
    /// Path.
    pub path: String,
    /// Query, when there is one.
    pub query: Option<String>,
    /// Header fields in order; values that are not UTF-8 are shown with replacements.
    pub headers: Vec<(String, String)>,
}

impl Recorded {
    /// The first field of that name, without regard to letter case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v.as_str())
    }
}

/// What the server knows; shared between its threads.
#[derive(Debug, Default)]
struct State {
    routes: std::collections::BTreeMap<String, Route>,
    requests: Vec<Recorded>,
}

/// The routes and the log of a running server.
#[derive(Debug, Clone, Default)]
struct Shared(Arc<Mutex<State>>);

impl Shared {
    /// A test that failed while it held the lock has said so already.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn record(&self, request: Recorded) {
        let mut state = self.lock();
        if state.requests.len() >= MAX_RECORDED {
            state.requests.remove(0);
        }
        state.requests.push(request);
    }

    fn change(&self, path: &str, change: impl FnOnce(&mut Route)) -> Result<(), ServerError> {
        let mut state = self.lock();
        let route = state.routes.get_mut(path).ok_or_else(|| ServerError::NoRoute(path.to_owned()))?;
        change(route);
        Ok(())
    }

    fn edit(&self, path: &str, find: &str, replace: &str) -> Result<(), ServerError> {
        let mut state = self.lock();
        let route = state.routes.get_mut(path).ok_or_else(|| ServerError::NoRoute(path.to_owned()))?;
        if route.edit(find, replace) { Ok(()) } else { Err(ServerError::NotFound(path.to_owned())) }
    }
}

/// A running server; it ends when it is dropped.
pub struct FakeFeedServer {
    server: MockServer,
    shared: Shared,
}

impl std::fmt::Debug for FakeFeedServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FakeFeedServer").field("address", self.server.address()).finish_non_exhaustive()
    }
}

impl FakeFeedServer {
    /// Starts on a free port of loopback.
    pub async fn start() -> Self {
        Self::with(MockServer::builder()).await
    }

    /// Starts on a listener.
    pub async fn start_on(listener: TcpListener) -> Self {
        Self::with(MockServer::builder().listener(listener)).await
    }

    async fn with(builder: wiremock::MockServerBuilder) -> Self {
        let shared = Shared::default();
        let server = builder.disable_request_recording().start().await;
        Mock::given(any()).respond_with(respond::Responder::new(shared.clone())).mount(&server).await;
        Self { server, shared }
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        *self.server.address()
    }

    /// The address of a path.
    #[must_use]
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address())
    }

    /// Serves a document, or replaces what was served there.
    pub fn serve(&self, path: &str, route: Route) {
        self.shared.lock().routes.insert(path.to_owned(), route);
    }

    /// Serves each file of a folder under its name, with the content type of its ending.
    ///
    /// # Errors
    /// What cannot be read.
    pub fn serve_folder(&self, folder: &Path) -> Result<Vec<String>, ServerError> {
        let failed = |path: &Path, source| ServerError::Read { path: path.display().to_string(), source };
        let mut served = Vec::new();
        for entry in std::fs::read_dir(folder).map_err(|e| failed(folder, e))? {
            let path = entry.map_err(|e| failed(folder, e))?.path();
            let (Some(name), true) = (path.file_name().and_then(|n| n.to_str()), path.is_file()) else { continue };
            let body = std::fs::read(&path).map_err(|e| failed(&path, e))?;
            let route_path = format!("/{name}");
            self.serve(&route_path, Route::new(body, route::content_type(name)));
            served.push(route_path);
        }
        served.sort();
        Ok(served)
    }

    /// Changes the script of a path.
    ///
    /// # Errors
    /// [`ServerError::NoRoute`] where nothing is served there.
    pub fn change(&self, path: &str, change: impl FnOnce(&mut Route)) -> Result<(), ServerError> {
        self.shared.change(path, change)
    }

    /// Replaces a text in a document; its validators change with it.
    ///
    /// # Errors
    /// Where there is no such route or text.
    pub fn edit(&self, path: &str, find: &str, replace: &str) -> Result<(), ServerError> {
        self.shared.edit(path, find, replace)
    }

    /// Every request so far, oldest first; those to the control endpoint do not count.
    #[must_use]
    pub fn requests(&self) -> Vec<Recorded> {
        self.shared.lock().requests.clone()
    }

    /// The requests for one path.
    #[must_use]
    pub fn requests_for(&self, path: &str) -> Vec<Recorded> {
        self.requests().into_iter().filter(|r| r.path == path).collect()
    }
}
