//! Sessions: listing them, opening a new one, deleting one, asking one something.

use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::StatusCode;
use hyper::body::{Body as _, Incoming};
use retake_agent::contract::{Action, Command, Mentions, Query, Request, SessionFacts};
use retake_agent::{ids, listing};
use retake_engine::checkpoint::ResolveError;
use retake_engine::id::SessionId;
use retake_engine::rewind::RecoveryChoice;
use retake_engine::session::SessionError;
use retake_engine::{Environment, OpenError, Workspace};
use serde::Serialize;
use tokio::time::timeout;

use crate::host::Problem;
use crate::limits;
use crate::response::{self, Answer, ResponseBody};
use crate::server::Shared;
use crate::stream;

#[derive(Serialize)]
struct SessionsDocument {
    sessions: Vec<SessionFacts>,
    workspace: String,
}

#[derive(Serialize)]
struct NewDocument {
    session: String,
}

#[derive(Serialize)]
struct DeletedDocument {
    deleted: String,
}

/// The conversations of the workspace, or those in which `search` is found.
pub(crate) async fn list(shared: &Shared, search: Option<String>) -> Result<Answer, Problem> {
    let environment = shared.environment.clone();
    let workspace = environment.root.display().to_string();
    let sessions = blocking(move || match Workspace::open(environment) {
        Ok(workspace) => match search {
            Some(query) => listing::search_sessions(&workspace, &query),
            None => listing::sessions(&workspace),
        }
        .map_err(|err| Problem::failed(err.to_string())),
        Err(OpenError::NotAWorkspace { .. }) => Ok(Vec::new()),
        Err(err) => Err(Problem::failed(err.to_string())),
    });
    Ok(response::json(StatusCode::OK, &SessionsDocument { sessions: sessions.await?, workspace }))
}

/// A new session, open here.
pub(crate) async fn open_new(shared: &Shared) -> Result<Answer, Problem> {
    let session = shared.sessions.open_new().await?.to_string();
    Ok(response::json(StatusCode::CREATED, &NewDocument { session }))
}

/// Deletes a session with everything that only it needs.
pub(crate) async fn delete(shared: &Shared, id: &str) -> Result<Answer, Problem> {
    let session = resolve(shared, id).await?;
    let environment = shared.environment.clone();
    let work = blocking(move || remove(environment, session));
    shared.sessions.while_closed(session, work).await?;
    Ok(response::json(StatusCode::OK, &DeletedDocument { deleted: session.to_string() }))
}

fn remove(environment: Environment, session: SessionId) -> Result<(), Problem> {
    let failed = |err: &dyn std::error::Error| Problem::failed(err.to_string());
    let mut workspace = Workspace::open(environment).map_err(|err| failed(&err))?;
    let new = ids::rewind();
    workspace.rewinds_mut().recover(RecoveryChoice::Ask, new.after, new.at).map_err(|err| failed(&err))?;
    match workspace.sessions().resolve(&session.to_string()) {
        // One in which nothing was ever said goes when it is closed.
        Err(ResolveError::UnknownSession { .. }) => return Ok(()),
        found => drop(found.map_err(|err| failed(&err))?),
    }
    let writer = workspace.sessions().open(session, ids::now(), &mut ids::random).map_err(|err| match err {
        SessionError::Live { .. } => Problem::taken(err.to_string()).hint("close it there first"),
        err => failed(&err),
    })?;
    workspace.sessions_mut().delete(writer).map_err(|err| failed(&err))?;
    Ok(())
}

/// What a session tells from now on, or from event number `from` on.
pub(crate) async fn events(
    shared: &Shared,
    id: &str,
    request: &hyper::Request<Incoming>,
    from: Option<&str>,
) -> Result<Answer, Problem> {
    let place = std::sync::Arc::clone(&shared.streams).try_acquire_owned().map_err(|_| {
        Problem::new(503, format!("{} streams are open already", shared.limits.streams)).hint("close a tab")
    })?;
    let entered = shared.sessions.enter(resolve(shared, id).await?).await?;
    let seen = stream::last_seen(request.headers(), from);
    let now = entered.events().seq();
    let pieces = stream::begin(entered, seen, place, shared.limits.heartbeat);
    let mut answer = response::of_kind(StatusCode::OK, "text/event-stream", Bytes::new());
    *answer.body_mut() = ResponseBody::Pieces(pieces);
    answer.headers_mut().insert(stream::NOW, now.into());
    Ok(answer)
}

/// Asks a session something.
pub(crate) async fn command(shared: &Shared, id: &str, request: hyper::Request<Incoming>) -> Result<Answer, Problem> {
    let session = resolve(shared, id).await?;
    let mut request = read(shared, request).await?;
    if request.id.is_empty() || request.id.len() > limits::REQUEST_ID || request.id.starts_with('#') {
        let message = format!("an id has 1 to {} bytes and does not begin with `#`", limits::REQUEST_ID);
        return Err(Problem::new(400, message));
    }
    // Files that are mentioned go along, as in the terminal.
    if let Command::Action(Action::Prompt { mentions, .. }) = &mut request.command {
        *mentions = Mentions::Attach;
    }
    match request.command {
        Command::Query(Query::Attach { .. }) => {
            Err(Problem::new(400, "nobody attaches in this way").hint("the events of a session are at `…/events`"))
        }
        Command::Action(Action::Close) => {
            Err(Problem::new(400, "a session is not closed in this way").hint("stop the server"))
        }
        _ => Ok(response::json(StatusCode::OK, &shared.sessions.enter(session).await?.ask(request).await?)),
    }
}

/// What the body of a request asks; it is neither too long nor comes too slowly.
async fn read(shared: &Shared, request: hyper::Request<Incoming>) -> Result<Request, Problem> {
    let most = shared.limits.body;
    let too_long = || Problem::new(413, format!("a request has at most {} MiB", most >> 20));
    let length = request.body().size_hint();
    if length.lower() > most as u64 {
        return Err(too_long());
    }
    // Whoever waits here holds nothing yet. Short ones do not wait, so that a turn can be stopped whatever else is on its way.
    let _place = match length.upper() {
        Some(length) if length <= limits::SHORT_BODY => None,
        _ => Some(shared.bodies.acquire().await.map_err(|_| Problem::new(503, "the server is stopping"))?),
    };
    let body = timeout(shared.limits.body_time, Limited::new(request.into_body(), most).collect()).await;
    let body = match body.map_err(|_| Problem::new(408, "the request took too long to come"))? {
        Ok(body) => body.to_bytes(),
        Err(err) if err.is::<LengthLimitError>() => return Err(too_long()),
        Err(err) => return Err(Problem::new(400, format!("the request was cut off: {err}"))),
    };
    if values(&body) > limits::VALUES {
        return Err(Problem::new(413, format!("a request has at most {} values", limits::VALUES)));
    }
    serde_json::from_slice(&body).map_err(|err| Problem::new(400, format!("this is no request: {err}")))
}

/// How many values a JSON text has, about: each takes far more memory than bytes of the text.
fn values(text: &[u8]) -> usize {
    let (mut count, mut is_string, mut is_escaped) = (0, false, false);
    for byte in text {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_string => is_escaped = true,
            b'"' => is_string = !is_string,
            b',' | b'[' | b'{' | b':' if !is_string => count += 1,
            _ => {}
        }
    }
    count
}

/// The session that an id, or a unique beginning of one, names.
async fn resolve(shared: &Shared, id: &str) -> Result<SessionId, Problem> {
    if let Some(session) = shared.sessions.named(id) {
        return Ok(session);
    }
    let (environment, id) = (shared.environment.clone(), id.to_owned());
    blocking(move || {
        let unknown = |message: String| Problem::new(404, message).hint("`GET /api/sessions` lists the sessions");
        let workspace = match Workspace::open(environment) {
            Err(OpenError::NotAWorkspace { .. }) => return Err(unknown(format!("there is no session `{id}`"))),
            opened => opened.map_err(|err| Problem::failed(err.to_string()))?,
        };
        workspace.sessions().resolve(&id).map(|session| session.id).map_err(|err| match err {
            ResolveError::Store(err) => Problem::failed(err.to_string()),
            err => unknown(err.to_string()),
        })
    })
    .await
}

/// Does something that waits for the disk.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T, Problem> + Send + 'static) -> Result<T, Problem> {
    tokio::task::spawn_blocking(work).await.map_err(|err| Problem::failed(err.to_string()))?
}
