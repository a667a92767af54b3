//! A web server for one reader on this machine. It answers requests that know the token and come
//! from the page itself; it refuses all others.
//!
//! It listens on 127.0.0.1 only. Any program and any web page on the machine can reach that, so:
//!
//! - every path begins with a token of 128 random bits; without it there is nothing (404);
//! - `Host` must be the printed address: a name that an attacker's DNS server resolves to 127.0.0.1
//!   (DNS rebinding) is refused (403), and so is a request from another origin (`Origin`,
//!   `Sec-Fetch-Site`);
//! - only GET, no bodies, and no path is ever looked up in a file system: the caller knows
//!   everything that can be requested;
//! - the resources that a client can use without the token are limited (`connections`);
//! - answers may not be framed, sniffed, cached, or disclosed as a referrer.

use std::io::{self, Read};
use std::net::{Ipv4Addr, TcpListener};

use self::connections::{Head, Response, Unreadable, Verdict};

mod connections;

pub struct Answer {
    pub media: &'static str,
    pub body: Vec<u8>,
    /// Marks the page's own script and style.
    pub nonce: Option<String>,
}

/// A server that knows its token.
pub struct Loopback {
    listener: TcpListener,
    port: u16,
    token: String,
}

/// Why a request is refused: status code, phrase, text.
type Refusal = (u16, &'static str, &'static str);

const MALFORMED: Refusal = (400, "Bad Request", "this is not HTTP/1.1\n");
const FOREIGN: Refusal = (403, "Forbidden", "the request did not come from this page\n");
/// No such thing, or no token.
const NOTHING: Refusal = (404, "Not Found", "not found\n");
const METHOD: Refusal = (405, "Method Not Allowed", "only GET\n");
const BODY: Refusal = (413, "Content Too Large", "only requests without a body\n");
/// A larger head than the page ever sends.
const HEAD: Refusal = (431, "Request Header Fields Too Large", "the header is too large\n");

/// An unpredictable token of 128 bits, in hexadecimal digits.
pub fn random_token() -> io::Result<String> {
    let mut bytes = [0u8; 16];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

impl Loopback {
    /// Listens on 127.0.0.1; port 0 means any free port.
    pub fn new(port: u16) -> Result<Self, String> {
        let cannot = |error| format!("cannot listen: {error}");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(cannot)?;
        let port = listener.local_addr().map_err(cannot)?.port();
        let token = random_token()
            .map_err(|error| format!("cannot listen without a token: /dev/urandom: {error}"))?;
        Ok(Self { listener, port, token })
    }

    pub fn address(&self) -> String {
        format!("http://127.0.0.1:{}/{}/", self.port, self.token)
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Answers requests until the process ends, each in its own thread. `answer` takes the path
    /// after the token and the query; it returns `None` if there is no such thing.
    pub fn serve(&self, answer: &(impl Fn(&str, &str) -> Option<Answer> + Sync)) {
        connections::serve(&self.listener, &|head: Result<&Head, Unreadable>| {
            let refusal = match head {
                Ok(head) => match self.check(head) {
                    Ok((path, query)) => {
                        return Verdict::Trusted(move || {
                            answer(&path, &query).map_or_else(|| refuse(NOTHING), respond)
                        });
                    }
                    Err(refusal) => refusal,
                },
                Err(Unreadable::TooLarge) => HEAD,
                Err(Unreadable::Malformed | Unreadable::Gone) => MALFORMED,
            };
            Verdict::Refused(refuse(refusal))
        });
    }

    /// Checks a request; returns the path after the token, and the query.
    fn check(&self, head: &Head) -> Result<(String, String), Refusal> {
        let hosts: Vec<&str> = head.values("Host").collect();
        let from_here = names_this_host(&hosts, self.port);
        let same_origin = head.values("Origin").all(|origin| {
            origin.strip_prefix("http://").is_some_and(|host| hosts.iter().all(|own| *own == host))
        });
        let (path, query) = head.target.split_once('?').unwrap_or((&head.target, ""));
        let mut parts = path.splitn(3, '/');
        let (first, token, rest) = (parts.next(), parts.next(), parts.next());
        if !(from_here && same_origin && is_of_own_page(head, rest == Some(""))) {
            return Err(FOREIGN);
        }
        match (first, token, rest) {
            (Some(""), Some(token), Some(rest)) if is_equal(token, &self.token) => {
                match head.method.as_str() {
                    _ if head.announces_body() => Err(BODY),
                    "GET" => Ok((rest.to_owned(), query.to_owned())),
                    _ => Err(METHOD),
                }
            }
            _ => Err(NOTHING),
        }
    }
}

/// Answers requests for a text that every program of this machine may read, until the process ends.
pub fn serve_text(
    listener: &TcpListener,
    path: &str,
    media: &'static str,
    text: &(impl Fn() -> String + Sync),
) -> io::Result<()> {
    let port = listener.local_addr()?.port();
    connections::serve(listener, &|head: Result<&Head, Unreadable>| {
        let refusal = match head {
            Ok(head) if !names_this_host(&head.values("Host").collect::<Vec<_>>(), port) => FOREIGN,
            Ok(head) if head.announces_body() => BODY,
            Ok(head) if head.method != "GET" => METHOD,
            Ok(head) if head.target.split('?').next() == Some(path) => {
                return Verdict::Trusted(|| {
                    respond(Answer { media, body: text().into_bytes(), nonce: None })
                });
            }
            Ok(_) => NOTHING,
            Err(Unreadable::TooLarge) => HEAD,
            Err(Unreadable::Malformed | Unreadable::Gone) => MALFORMED,
        };
        Verdict::Refused(refuse(refusal))
    });
    Ok(())
}

/// Whether the only host that a request names is this one.
fn names_this_host(hosts: &[&str], port: u16) -> bool {
    let own = [format!("127.0.0.1:{port}"), format!("localhost:{port}")];
    matches!(hosts, [host] if own.iter().any(|own| own == host))
}

/// Whether a request comes from the page itself, according to the browser; other programs do not
/// send this information. The page itself may be opened from anywhere with its address (a link, the
/// file that `view` hands to the browser), but only as a top-level page, never inside another.
fn is_of_own_page(head: &Head, is_page: bool) -> bool {
    let all = |name: &str, value: &str| {
        let mut values = head.values(name).peekable();
        values.peek().is_some() && values.all(|found| found == value)
    };
    let opened = all("Sec-Fetch-Mode", "navigate") && all("Sec-Fetch-Dest", "document");
    let own = head.values("Sec-Fetch-Site").all(|site| matches!(site, "same-origin" | "none"));
    own || (is_page && opened)
}

/// Compares two texts in a time that does not depend on where they differ.
fn is_equal(a: &str, b: &str) -> bool {
    let differences = a.bytes().zip(b.bytes()).fold(0, |all, (a, b)| all | (a ^ b));
    a.len() == b.len() && differences == 0
}

fn respond(answer: Answer) -> Response {
    let policy = match &answer.nonce {
        Some(nonce) => format!(
            "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; img-src data:; \
             connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
        ),
        None => "default-src 'none'; frame-ancestors 'none'".to_owned(),
    };
    let mut headers = careful_headers(answer.media);
    headers.push(("Content-Security-Policy", policy));
    Response { status: (200, "OK"), headers, body: answer.body }
}

fn refuse(refusal: Refusal) -> Response {
    let (code, phrase, text) = refusal;
    let mut headers = careful_headers("text/plain; charset=utf-8");
    if refusal == METHOD {
        headers.push(("Allow", "GET".to_owned()));
    }
    Response { status: (code, phrase), headers, body: text.as_bytes().to_vec() }
}

fn careful_headers(media: &str) -> Vec<(&'static str, String)> {
    let headers = [
        ("Content-Type", media),
        ("Cache-Control", "no-store"),
        ("X-Content-Type-Options", "nosniff"),
        ("X-Frame-Options", "DENY"),
        ("Referrer-Policy", "no-referrer"),
        ("Cross-Origin-Resource-Policy", "same-origin"),
        ("Cross-Origin-Opener-Policy", "same-origin"),
    ];
    headers.into_iter().map(|(name, value)| (name, value.to_owned())).collect()
}

#[cfg(test)]
mod tests;
