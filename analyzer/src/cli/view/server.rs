//! A web server for one reader on this machine: requests come in; those that know the token and come from
//! the page itself get an answer, all others are refused.
//!
//! It listens on 127.0.0.1 only. Any program and any web page on the machine can reach that, so:
//!
//! - every path begins with a token of 128 random bits; without it there is nothing (404);
//! - `Host` must be the address that was printed: a name that an attacker's DNS server points at 127.0.0.1
//!   (DNS rebinding) is refused (403), and so is a request of another origin (`Origin`, `Sec-Fetch-Site`);
//! - only GET, no bodies, and no path is ever looked up in a file system: the caller knows all that there is;
//! - what is answered may not be framed, sniffed, cached, or told onwards as a referrer.

use std::io::{self, Read};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

use tiny_http::{Header, Method, Request, Response, Server};

/// What is answered.
pub struct Answer {
    /// Its media type.
    pub media: &'static str,
    /// Its body.
    pub body: Vec<u8>,
    /// The script and style that are the page's own are known by this.
    pub nonce: Option<String>,
}

/// A server that knows its token.
pub struct Loopback {
    server: Server,
    port: u16,
    token: String,
}

/// Why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refusal {
    /// Not from the page: 403.
    Foreign,
    /// No such thing, or no token: 404.
    Nothing,
    /// Not GET: 405.
    Method,
}

/// Bits that nobody can guess, in hexadecimal digits.
///
/// # Errors
/// When the system has none.
pub fn random_token() -> io::Result<String> {
    let mut bytes = [0u8; 16];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

impl Loopback {
    /// Listens on 127.0.0.1; port 0: any that is free.
    ///
    /// # Errors
    /// A sentence when it cannot.
    pub fn new(port: u16) -> Result<Self, String> {
        let address = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, port));
        let server = Server::http(address).map_err(|error| error.to_string())?;
        let port = server.server_addr().to_ip().map(|address| address.port());
        let token = random_token().map_err(|error| format!("/dev/urandom: {error}"))?;
        Ok(Self { server, port: port.ok_or("it has no port")?, token })
    }

    /// Where the page is.
    pub fn address(&self) -> String {
        format!("http://127.0.0.1:{}/{}/", self.port, self.token)
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Answers requests until the process ends; may be called by several threads. `answer` is given what
    /// follows the token, and the query; `None`: there is no such thing.
    pub fn serve(&self, answer: &(impl Fn(&str, &str) -> Option<Answer> + Sync)) {
        loop {
            // A connection that breaks is its client's affair.
            let Ok(request) = self.server.recv() else { continue };
            let result = match self.check(&request) {
                Ok((path, query)) => answer(&path, &query).ok_or(Refusal::Nothing),
                Err(refusal) => Err(refusal),
            };
            let _ = match result {
                Ok(answer) => request.respond(respond(answer)),
                Err(refusal) => request.respond(refuse(refusal)),
            };
        }
    }

    /// Path behind the token, and query.
    fn check(&self, request: &Request) -> Result<(String, String), Refusal> {
        let values = |name: &'static str| {
            let headers = request.headers().iter();
            headers.filter(move |h| h.field.equiv(name)).map(|h| h.value.as_str().to_owned())
        };
        let own = [format!("127.0.0.1:{}", self.port), format!("localhost:{}", self.port)];
        let hosts: Vec<String> = values("Host").collect();
        let from_here = matches!(&hosts[..], [host] if own.contains(host));
        let same_origin = values("Origin").all(|origin| {
            origin.strip_prefix("http://").is_some_and(|host| hosts.iter().all(|own| own == host))
        });
        // What a browser says of where a request comes from; other programs do not.
        let own_page =
            values("Sec-Fetch-Site").all(|site| matches!(site.as_str(), "same-origin" | "none"));
        if !(from_here && same_origin && own_page) {
            return Err(Refusal::Foreign);
        }
        let (path, query) = request.url().split_once('?').unwrap_or((request.url(), ""));
        let mut parts = path.splitn(3, '/');
        let (first, token, rest) = (parts.next(), parts.next(), parts.next());
        match (first, token, rest) {
            (Some(""), Some(token), Some(rest)) if is_equal(token, &self.token) => {
                match request.method() {
                    Method::Get => Ok((rest.to_owned(), query.to_owned())),
                    _ => Err(Refusal::Method),
                }
            }
            _ => Err(Refusal::Nothing),
        }
    }
}

/// Compares in a time that says nothing of where two texts differ.
fn is_equal(a: &str, b: &str) -> bool {
    let differences = a.bytes().zip(b.bytes()).fold(0, |all, (a, b)| all | (a ^ b));
    a.len() == b.len() && differences == 0
}

fn header(name: &str, value: &str) -> Header {
    // Names and values are ours, and plain ASCII.
    Header::from_bytes(name, value).unwrap_or_else(|()| panic!("not a header: {name}"))
}

fn respond(answer: Answer) -> Response<io::Cursor<Vec<u8>>> {
    let policy = match &answer.nonce {
        Some(nonce) => format!(
            "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; img-src data:; \
             connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
        ),
        None => "default-src 'none'; frame-ancestors 'none'".to_owned(),
    };
    with_care(Response::from_data(answer.body))
        .with_header(header("Content-Type", answer.media))
        .with_header(header("Content-Security-Policy", &policy))
}

fn refuse(refusal: Refusal) -> Response<io::Cursor<Vec<u8>>> {
    let (status, text) = match refusal {
        Refusal::Foreign => (403, "this page is not for you\n"),
        Refusal::Nothing => (404, "there is nothing here\n"),
        Refusal::Method => (405, "only GET\n"),
    };
    with_care(Response::from_data(text.as_bytes().to_vec()))
        .with_status_code(status)
        .with_header(header("Content-Type", "text/plain; charset=utf-8"))
}

fn with_care(response: Response<io::Cursor<Vec<u8>>>) -> Response<io::Cursor<Vec<u8>>> {
    response
        .with_header(header("Cache-Control", "no-store"))
        .with_header(header("X-Content-Type-Options", "nosniff"))
        .with_header(header("X-Frame-Options", "DENY"))
        .with_header(header("Referrer-Policy", "no-referrer"))
        .with_header(header("Cross-Origin-Resource-Policy", "same-origin"))
        .with_header(header("Cross-Origin-Opener-Policy", "same-origin"))
}

#[cfg(test)]
mod tests;
