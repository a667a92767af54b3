//! Handles connections from possibly hostile programs: reads the head of one request from each,
//! writes one answer, and closes the connection.
//!
//! Nothing that a client sends can exceed the limits below. No body is ever read, so a declared
//! length costs nothing. A head is limited in size and time. The number of connections that have
//! not shown the token is limited, and a new one replaces the oldest, so stalled connections cannot
//! keep the reader of the page out.
//!
//! Only the head is parsed, by httparse: one request without the token ended tiny_http 0.12 (it
//! allocates what a length declares, and half-sent bodies block its threads), rouille is tiny_http,
//! oxhttp meets no limit when bytes drip, and hyper brings an asynchronous runtime around code that
//! computes. One request per connection costs less on this machine than what it asks for.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

const MAX_HEAD_BYTES: usize = 16 * 1024;
const MAX_HEADERS: usize = 64;
/// Time in which a head must have arrived.
const HEAD_TIME: Duration = Duration::from_secs(5);
/// Time in which the client must have taken the answer.
const ANSWER_TIME: Duration = Duration::from_secs(60);
/// Maximum number of connections that have not shown the token.
const MAX_STRANGERS: usize = 32;
/// Maximum number of answers that are computed at the same time.
const MAX_ANSWERS: usize = 4;
/// How much a refused client may still send before the connection is reset, so that it can read the
/// answer.
const MAX_DISCARDED_BYTES: usize = 64 * 1024;
/// How long it may take to send that.
const DISCARD_TIME: Duration = Duration::from_millis(500);

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Head {
    pub method: String,
    /// Path and query as sent.
    pub target: String,
    headers: Vec<(String, Vec<u8>)>,
}

impl Head {
    /// All values of a header, in order. Values that are not UTF-8 are replaced by a text that
    /// matches nothing.
    pub fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let named = self.headers.iter().filter(move |(found, _)| found.eq_ignore_ascii_case(name));
        named.map(|(_, value)| std::str::from_utf8(value).unwrap_or("\u{fffd}"))
    }

    /// Whether a body follows or may follow.
    pub fn announces_body(&self) -> bool {
        self.values("Transfer-Encoding").next().is_some()
            || self.values("Content-Length").any(|length| length.trim() != "0")
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// Status code and its phrase.
    pub status: (u16, &'static str),
    /// Names and values; `Content-Length` and `Connection` are added.
    pub headers: Vec<(&'static str, String)>,
    pub body: Vec<u8>,
}

/// The decision about a request.
pub enum Verdict<F> {
    /// It knows the token: this function computes the answer when its turn comes.
    Trusted(F),
    /// It does not know the token, or asks for something that does not exist.
    Refused(Response),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unreadable {
    Malformed,
    /// Larger than any head that the page sends.
    TooLarge,
    /// The client went away or was too slow; no answer can be sent.
    Gone,
}

/// Connections that have not shown the token, oldest first.
#[derive(Default)]
struct UnauthenticatedConnections {
    connections: Mutex<VecDeque<Arc<TcpStream>>>,
}

impl UnauthenticatedConnections {
    fn lock(&self) -> MutexGuard<'_, VecDeque<Arc<TcpStream>>> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a connection; if there are too many, the oldest is closed.
    fn enter(&self, stream: &Arc<TcpStream>) -> UnauthenticatedConnection<'_> {
        let mut connections = self.lock();
        if connections.len() >= MAX_STRANGERS
            && let Some(oldest) = connections.pop_front()
        {
            let _ = oldest.shutdown(Shutdown::Both);
        }
        connections.push_back(stream.clone());
        UnauthenticatedConnection { among: self, stream: stream.clone() }
    }
}

struct UnauthenticatedConnection<'a> {
    among: &'a UnauthenticatedConnections,
    stream: Arc<TcpStream>,
}

impl Drop for UnauthenticatedConnection<'_> {
    fn drop(&mut self) {
        self.among.lock().retain(|other| !Arc::ptr_eq(other, &self.stream));
    }
}

/// Limits the number of answers that are computed at the same time to [`MAX_ANSWERS`].
#[derive(Default)]
struct AnswerPermits {
    taken: Mutex<usize>,
    freed: Condvar,
}

/// A permit; dropping it returns it.
struct Permit<'a>(&'a AnswerPermits);

impl AnswerPermits {
    fn take(&self) -> Permit<'_> {
        let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let full = |taken: &mut usize| *taken >= MAX_ANSWERS;
        *self.freed.wait_while(taken, full).unwrap_or_else(PoisonError::into_inner) += 1;
        Permit(self)
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        *self.0.taken.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        self.0.freed.notify_one();
    }
}

/// Accepts connections until the process ends. `authorise` decides on a head, or on what was received
/// instead.
pub fn serve<F: FnOnce() -> Response>(
    listener: &TcpListener,
    authorise: &(impl Fn(Result<&Head, Unreadable>) -> Verdict<F> + Sync),
) {
    let (unauthenticated, permits) =
        (&UnauthenticatedConnections::default(), &AnswerPermits::default());
    std::thread::scope(|scope| {
        loop {
            let Ok((stream, _)) = listener.accept() else {
                // Most likely out of descriptors, which become free as connections end.
                std::thread::sleep(Duration::from_millis(20));
                continue;
            };
            let stream = Arc::new(stream);
            let connection = unauthenticated.enter(&stream);
            // If no thread can be started, the connection is closed, which its client notices.
            let _ = std::thread::Builder::new().spawn_scoped(scope, move || {
                handle_connection(&stream, connection, permits, authorise)
            });
        }
    });
}

fn handle_connection<F: FnOnce() -> Response>(
    stream: &TcpStream,
    connection: UnauthenticatedConnection,
    permits: &AnswerPermits,
    authorise: &impl Fn(Result<&Head, Unreadable>) -> Verdict<F>,
) {
    let head = read_head(stream, Instant::now() + HEAD_TIME);
    if head == Err(Unreadable::Gone) {
        return;
    }
    // Errors of a broken connection concern only its client.
    let _ = match authorise(head.as_ref().map_err(|unreadable| *unreadable)) {
        Verdict::Trusted(answer) => {
            drop(connection);
            let response = {
                let _permit = permits.take();
                answer()
            };
            write_response(stream, &response, ANSWER_TIME)
        }
        Verdict::Refused(response) => {
            write_response(stream, &response, DISCARD_TIME).map(|()| discard(stream))
        }
    };
}

fn read_head(stream: &TcpStream, deadline: Instant) -> Result<Head, Unreadable> {
    let mut received = Vec::new();
    let mut buffer = [0u8; 4096];
    loop {
        match read_until(stream, &mut buffer, deadline) {
            Ok(0) | Err(_) => return Err(Unreadable::Gone),
            Ok(length) => received.extend_from_slice(&buffer[..length]),
        }
        if let Some(head) = parse(&received)? {
            return Ok(head);
        }
        if received.len() >= MAX_HEAD_BYTES {
            return Err(Unreadable::TooLarge);
        }
    }
}

/// Parses the head; `None` while it is incomplete.
fn parse(received: &[u8]) -> Result<Option<Head>, Unreadable> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(received) {
        Ok(httparse::Status::Complete(_)) => {}
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => return Err(Unreadable::TooLarge),
        Err(_) => return Err(Unreadable::Malformed),
    }
    let owned = |header: &httparse::Header| (header.name.to_owned(), header.value.to_owned());
    Ok(Some(Head {
        method: request.method.unwrap_or_default().to_owned(),
        target: request.path.unwrap_or_default().to_owned(),
        headers: request.headers.iter().map(owned).collect(),
    }))
}

/// Reads what is available, or waits for it until the deadline.
fn read_until(mut stream: &TcpStream, buffer: &mut [u8], deadline: Instant) -> io::Result<usize> {
    loop {
        stream.set_read_timeout(Some(time_left(deadline)?))?;
        match stream.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

fn time_left(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

fn write_response(stream: &TcpStream, response: &Response, time: Duration) -> io::Result<()> {
    let (code, phrase) = response.status;
    let mut bytes = format!("HTTP/1.1 {code} {phrase}\r\nConnection: close\r\n").into_bytes();
    bytes.extend(format!("Content-Length: {}\r\n", response.body.len()).bytes());
    for (name, value) in &response.headers {
        bytes.extend(format!("{name}: {value}\r\n").bytes());
    }
    bytes.extend(b"\r\n");
    bytes.extend(&response.body);
    let deadline = Instant::now() + time;
    let mut rest = &bytes[..];
    let mut stream = stream;
    while !rest.is_empty() {
        stream.set_write_timeout(Some(time_left(deadline)?))?;
        match stream.write(rest) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(length) => rest = &rest[length..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    stream.shutdown(Shutdown::Write)
}

/// Reads a little of what a refused client still sends: closing immediately would reset the
/// connection before the client has read the answer.
fn discard(stream: &TcpStream) {
    let deadline = Instant::now() + DISCARD_TIME;
    let mut buffer = [0u8; 4096];
    let mut discarded = 0;
    while discarded < MAX_DISCARDED_BYTES {
        match read_until(stream, &mut buffer, deadline) {
            Ok(0) | Err(_) => return,
            Ok(length) => discarded += length,
        }
    }
}
