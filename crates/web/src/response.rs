//! Answers: what their bodies are made of, and the few kinds of them that there are.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};
use serde::Serialize;
use tokio::sync::mpsc;

use crate::host::Problem;

/// The body of an answer.
pub(crate) enum ResponseBody {
    /// What is left of it.
    Whole(Bytes),
    /// It comes in pieces.
    Pieces(mpsc::Receiver<Bytes>),
}

/// An answer.
pub(crate) type Answer = Response<ResponseBody>;

impl hyper::body::Body for ResponseBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = match self.get_mut() {
            Self::Whole(bytes) if bytes.is_empty() => None,
            Self::Whole(bytes) => Some(std::mem::take(bytes)),
            Self::Pieces(pieces) => std::task::ready!(pieces.poll_recv(cx)),
        };
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(bytes) if bytes.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Self::Pieces(_) => SizeHint::default(),
        }
    }
}

/// What programs are told of something that could not be done.
#[derive(Serialize)]
struct ErrorDocument<'a> {
    error: ErrorFacts<'a>,
}

#[derive(Serialize)]
struct ErrorFacts<'a> {
    message: &'a str,
    hint: Option<&'a str>,
}

/// An answer of some kind that nobody keeps.
pub(crate) fn of_kind(status: StatusCode, kind: &'static str, content: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(ResponseBody::Whole(content.into()));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}

/// An answer without a body.
pub(crate) fn empty(status: StatusCode) -> Answer {
    let mut answer = Response::new(ResponseBody::Whole(Bytes::new()));
    *answer.status_mut() = status;
    answer
}

/// A document.
pub(crate) fn json(status: StatusCode, document: &impl Serialize) -> Answer {
    match serde_json::to_vec(document) {
        Ok(text) => of_kind(status, "application/json", text),
        Err(err) => problem(&Problem::failed(format!("the answer cannot be written: {err}"))),
    }
}

/// Something could not be done.
pub(crate) fn problem(problem: &Problem) -> Answer {
    let error = ErrorFacts { message: &problem.message, hint: problem.hint.as_deref() };
    let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    // Two strings can always be written.
    let text = serde_json::to_vec(&ErrorDocument { error }).unwrap_or_default();
    of_kind(status, "application/json", text)
}

/// How a page of a few words looks: the one file that anybody may have.
pub(crate) const WORDS_STYLE: &str = "/words.css";

/// A page of a few words, for somebody who has not come in.
pub(crate) fn words(status: StatusCode, title: &str, lines: &[&str]) -> Answer {
    let lines: String = lines.iter().map(|line| format!("<p>{line}</p>\n")).collect();
    let text = format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>Retake</title>\n<link rel=\"stylesheet\" href=\"{WORDS_STYLE}\">\n\
         <main>\n<h1>{title}</h1>\n{lines}</main>\n</html>\n"
    );
    of_kind(status, "text/html; charset=utf-8", text)
}
