//! The service as operators' commands see it: a running one, or the data folder of one that does not run.
//!
//! Both are called through the same routes, so a command means the same with either.

use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::header::CONTENT_TYPE;
use axum::http::{Method, Request, StatusCode};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tower::ServiceExt;
use url::form_urlencoded;

use super::output::{self, CliError};
use super::remote::Remote;
use super::setup::Common;
use crate::api::{Api, MAX_LIMIT};
use crate::corpus::Service;
use crate::ids;
use crate::server::{Offline, StartError};

/// The corpus that is made for the first feed, where there is none at all and none is named.
const FIRST_CORPUS: &str = "feeds";

/// Which service a command talks to.
#[derive(Debug, clap::Args)]
pub(super) struct Access {
    /// A running service; its key is in HOST_SHIM_KEY [default: the data folder itself].
    #[arg(long, global = true, env = "HOST_SHIM_SERVER", value_name = "URL")]
    server: Option<String>,
    /// File with the API key, instead of HOST_SHIM_KEY.
    #[arg(long, global = true, value_name = "FILE", requires = "server")]
    key_file: Option<PathBuf>,
    /// PEM file with authorities of your own that the service's certificate may be signed by.
    #[arg(long, global = true, value_name = "FILE", requires = "server")]
    server_authority: Option<PathBuf>,
    /// Configuration (TOML) that names the data folder.
    #[arg(long, global = true, value_name = "FILE", conflicts_with = "server")]
    config: Option<PathBuf>,
}

/// A service that can be called.
pub(super) enum Operator {
    /// One that runs.
    Remote(Remote),
    /// A data folder, for as long as this value lives.
    Folder {
        /// Its routes.
        router: Router,
        /// The service that owns it.
        offline: Offline,
    },
}

impl Operator {
    /// Reaches the service, or takes the folder.
    pub(super) async fn open(common: &Common, access: &Access) -> Result<Self, CliError> {
        if let Some(server) = &access.server {
            let remote = Remote::new(server, access.key_file.as_deref(), access.server_authority.as_deref())?;
            return Ok(Self::Remote(remote));
        }
        let config = common.configuration(access.config.as_deref())?;
        let offline = Offline::open(&config).await.map_err(|error| match error {
            StartError::Locked(folder) => CliError::InUse { folder, listen: config.listen },
            other => other.into(),
        })?;
        for warning in &offline.warnings {
            output::complain(warning);
        }
        let router = Api::new(Arc::clone(&offline.service)).operator_router();
        Ok(Self::Folder { router, offline })
    }

    /// The service of a data folder: nobody else runs anything there.
    pub(super) fn own(&self) -> Option<&Arc<Service>> {
        match self {
            Self::Remote(_) => None,
            Self::Folder { offline, .. } => Some(&offline.service),
        }
    }

    /// Reads a resource.
    pub(super) async fn get(&self, path: &str) -> Result<Value, CliError> {
        json_of(&self.call(Method::GET, path, None).await?)
    }

    /// Reads a resource as text.
    pub(super) async fn text(&self, path: &str) -> Result<String, CliError> {
        let body = self.call(Method::GET, path, None).await?;
        String::from_utf8(body.to_vec()).map_err(|_| CliError::NotOurs)
    }

    /// Sends JSON.
    pub(super) async fn post(&self, path: &str, body: &Value) -> Result<Value, CliError> {
        let body = ("application/json", body.to_string().into());
        json_of(&self.call(Method::POST, path, Some(body)).await?)
    }

    /// Sends a list of feeds.
    pub(super) async fn post_opml(&self, path: &str, text: String) -> Result<Value, CliError> {
        json_of(&self.call(Method::POST, path, Some(("text/x-opml", text.into()))).await?)
    }

    async fn call(&self, method: Method, path: &str, body: Option<(&str, Bytes)>) -> Result<Bytes, CliError> {
        let mut request = Request::builder().method(method).uri(path);
        if let Some((kind, _)) = &body {
            request = request.header(CONTENT_TYPE, *kind);
        }
        let body = body.map_or_else(Body::empty, |(_, bytes)| Body::from(bytes));
        let request = request.body(body).map_err(|e| CliError::Usage(format!("this cannot be asked for: {e}")))?;
        let (status, body) = match self {
            Self::Remote(remote) => remote.call(request).await?,
            Self::Folder { router, .. } => {
                let Ok(response) = router.clone().oneshot(request).await;
                let (head, body) = response.into_parts();
                let body = body.collect().await.map_err(|_| CliError::NotOurs)?;
                (head.status, body.to_bytes())
            }
        };
        if status.is_success() { Ok(body) } else { Err(refused(status, &body)) }
    }

    /// Every entry of a list, page by page, handed on one by one.
    pub(super) async fn each(
        &self,
        path: &str,
        query: &[(&str, &str)],
        mut take: impl FnMut(Value) -> Result<(), CliError>,
    ) -> Result<(), CliError> {
        let mut cursor: Option<String> = None;
        loop {
            let limit = MAX_LIMIT.to_string();
            let mut all = vec![("limit", limit.as_str())];
            all.extend_from_slice(query);
            all.extend(cursor.as_deref().map(|cursor| ("page_cursor", cursor)));
            let mut page = self.get(&with_query(path, &all)).await?;
            if let Some(items) = page.get_mut("items").and_then(Value::as_array_mut) {
                std::mem::take(items).into_iter().try_for_each(&mut take)?;
            }
            cursor = page.get("next_page_cursor").and_then(Value::as_str).map(str::to_owned);
            if cursor.is_none() {
                return Ok(());
            }
        }
    }

    /// The corpora, as pairs of identifier and name.
    async fn corpora(&self) -> Result<Vec<(String, String)>, CliError> {
        let mut all = Vec::new();
        self.each("/v0/corpora", &[], |corpus| {
            all.push((text(&corpus, "/corpus_id").to_owned(), text(&corpus, "/name").to_owned()));
            Ok(())
        })
        .await?;
        Ok(all)
    }

    /// The corpus that a person means by an identifier or a name; without either the only one there is.
    pub(super) async fn corpus(&self, named: Option<&str>) -> Result<Option<String>, CliError> {
        let corpora = self.corpora().await?;
        match named {
            Some(named) => {
                let found =
                    corpora.iter().find(|(id, _)| id == named).or_else(|| corpora.iter().find(|(_, n)| n == named));
                let Some((id, _)) = found else {
                    let all: Vec<&str> = corpora.iter().map(|(_, name)| name.as_str()).take(10).collect();
                    return Err(CliError::Usage(format!(
                        "there is no corpus {named:?}; there are: {}",
                        all.join(", ")
                    )));
                };
                Ok(Some(id.clone()))
            }
            None => match corpora.as_slice() {
                [] => Ok(None),
                [(id, _)] => Ok(Some(id.clone())),
                _ => Err(CliError::Usage("there are several corpora: name one with --corpus".to_owned())),
            },
        }
    }

    /// The same, for what is added: the first corpus of all is made.
    pub(super) async fn corpus_for_more(&self, named: Option<&str>) -> Result<String, CliError> {
        if let Some(id) = self.corpus(named).await? {
            return Ok(id);
        }
        let made = self.post("/v0/corpora", &json!({"idempotency_key": once(), "name": FIRST_CORPUS})).await?;
        output::complain(&format!("there was no corpus: {FIRST_CORPUS:?} is made"));
        Ok(text(&made, "/corpus_id").to_owned())
    }

    /// The instance that a person means by an identifier, a name or an address.
    pub(super) async fn feed(&self, named: &str) -> Result<Value, CliError> {
        if named.starts_with("con_") {
            return self.get(&feed_path(named)).await;
        }
        let address = crate::corpus::address::same(named);
        let mut found = Vec::new();
        self.each("/v0/connectors", &[], |feed| {
            let is_meant =
                text(&feed, "/name") == named || crate::corpus::address::same(text(&feed, "/config/url")) == address;
            if is_meant && feed.pointer("/enabled") == Some(&Value::Bool(true)) {
                found.push(text(&feed, "/connector_id").to_owned());
            }
            Ok(())
        })
        .await?;
        match found.as_slice() {
            // Asked for once more by itself, since only that answer has the counts.
            [id] => self.get(&feed_path(id)).await,
            [] => Err(CliError::Usage(format!("there is no feed {named:?}; `feeds list` shows all"))),
            several => Err(CliError::Usage(format!("{named:?} means several feeds: {}", several.join(", ")))),
        }
    }
}

/// The path of an instance.
pub(super) fn feed_path(id: &str) -> String {
    let id: String = form_urlencoded::byte_serialize(id.as_bytes()).collect();
    format!("/v0/connectors/{id}")
}

/// A path with a query.
pub(super) fn with_query(path: &str, query: &[(&str, &str)]) -> String {
    format!("{path}?{}", form_urlencoded::Serializer::new(String::new()).extend_pairs(query).finish())
}

/// A member of an answer, empty where it has none.
pub(super) fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or("")
}

/// A key for a call that is made once.
pub(super) fn once() -> String {
    ids::new("call", jiff::Timestamp::now().as_millisecond())
}

fn json_of(body: &[u8]) -> Result<Value, CliError> {
    serde_json::from_slice(body).map_err(|_| CliError::NotOurs)
}

fn refused(status: StatusCode, body: &[u8]) -> CliError {
    match json_of(body) {
        Ok(error) if error.get("code").is_some() => {
            CliError::Refused { code: text(&error, "/code").to_owned(), message: text(&error, "/message").to_owned() }
        }
        _ => CliError::Refused {
            code: format!("http_{}", status.as_u16()),
            message: "the answer is not that of this service; check --server".to_owned(),
        },
    }
}
