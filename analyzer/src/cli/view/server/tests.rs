use super::*;
use std::io::Write;
use std::net::TcpStream;
use std::sync::{LazyLock, Once};

/// The server of all tests.
fn served() -> &'static Loopback {
    static SERVER: LazyLock<Loopback> = LazyLock::new(|| Loopback::new(0).unwrap());
    static SERVING: Once = Once::new();
    SERVING.call_once(|| {
        std::thread::spawn(|| {
            SERVER.serve(&|path, query| {
                let body = format!("answer {query}").into_bytes();
                (path == "known").then_some(Answer { media: "text/plain", body, nonce: None })
            });
        });
    });
    &SERVER
}

/// Sends a raw request; returns the status and the whole answer.
fn ask(request: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(("127.0.0.1", served().port())).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let status = answer.split(' ').nth(1).and_then(|word| word.parse().ok());
    (status.unwrap_or_else(|| panic!("no status: {answer}")), answer)
}

fn get(path: &str, headers: &str) -> (u16, String) {
    let host = format!("127.0.0.1:{}", served().port());
    ask(&format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n{headers}Connection: close\r\n\r\n"))
}

#[test]
fn answers_with_token_and_restrictive_headers() {
    let (status, answer) = get(&format!("/{}/known?a=1", served().token), "");
    assert_eq!(status, 200);
    assert!(answer.ends_with("answer a=1"), "{answer}");
    for line in [
        "Cache-Control: no-store",
        "X-Frame-Options: DENY",
        "Referrer-Policy: no-referrer",
        "Content-Security-Policy: default-src 'none'",
        "X-Content-Type-Options: nosniff",
    ] {
        assert!(answer.contains(line), "{line}: {answer}");
    }
    assert!(!answer.contains("Access-Control-Allow"), "{answer}");
}

#[test]
fn refuses_requests_without_token() {
    let token = &served().token;
    let wrong = format!("{}g", &token[..31]);
    for path in [
        "/",
        "/known",
        "//known",
        "/../known",
        &format!("/{wrong}/known"),
        &format!("/{}/known", &token[..31]),
        &format!("/{token}0/known"),
        &format!("/{token}"),
        &format!("/x/{token}/known"),
    ] {
        assert_eq!(get(path, "").0, 404, "{path}");
    }
}

#[test]
fn no_path_leads_elsewhere() {
    let token = &served().token;
    for path in [
        "",
        "..",
        "../known",
        "known/",
        "known/../known",
        "%6bnown",
        "etc/passwd",
        "../../../../etc/passwd",
        "%2e%2e%2f%2e%2e%2fetc%2fpasswd",
        "known%00",
        "/known",
    ] {
        let (status, answer) = get(&format!("/{token}/{path}"), "");
        assert_eq!(status, 404, "{path}");
        assert!(!answer.contains("root:"), "{path}");
    }
    let (status, _) = ask(&format!(
        "GET http://127.0.0.1:{}/etc/passwd HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nConnection: close\r\n\r\n",
        served().port(),
        served().port()
    ));
    assert!(status >= 400);
}

#[test]
fn refuses_other_origins_and_host_names() {
    let (port, token) = (served().port(), &served().token);
    let path = format!("/{token}/known");
    for header in [
        "Origin: http://evil.example\r\n".to_owned(),
        "Origin: null\r\n".to_owned(),
        format!("Origin: https://127.0.0.1:{port}\r\n"),
        format!("Origin: http://127.0.0.1:{}\r\n", port ^ 1),
        "Sec-Fetch-Site: cross-site\r\n".to_owned(),
        "Sec-Fetch-Site: same-site\r\n".to_owned(),
    ] {
        assert_eq!(get(&path, &header).0, 403, "{header}");
    }
    assert_eq!(get(&path, &format!("Origin: http://127.0.0.1:{port}\r\n")).0, 200);
    // A name that resolves to this machine.
    let by_name =
        |hosts: &str| ask(&format!("GET {path} HTTP/1.1\r\n{hosts}Connection: close\r\n\r\n")).0;
    for hosts in [
        format!("Host: evil.example:{port}\r\n"),
        "Host: 127.0.0.1\r\n".to_owned(),
        format!("Host: 127.0.0.1:{port}.evil.example\r\n"),
        format!("Host: 127.0.0.1:{port}\r\nHost: evil.example\r\n"),
        String::new(),
    ] {
        assert_eq!(by_name(&hosts), 403, "{hosts}");
    }
    assert_eq!(by_name(&format!("Host: localhost:{port}\r\n")), 200);
}

#[test]
fn only_page_itself_may_be_opened_from_elsewhere() {
    let token = &served().token;
    let from_elsewhere = |path: &str, mode: &str, destination: &str| {
        let headers = format!(
            "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: {mode}\r\nSec-Fetch-Dest: {destination}\r\n"
        );
        get(path, &headers).0
    };
    // The file that redirects a browser here; there is no page in this test, so 404 means accepted.
    assert_eq!(from_elsewhere(&format!("/{token}/"), "navigate", "document"), 404);
    assert_eq!(from_elsewhere(&format!("/{token}/"), "navigate", "iframe"), 403);
    assert_eq!(from_elsewhere(&format!("/{token}/"), "no-cors", "script"), 403);
    assert_eq!(from_elsewhere(&format!("/{token}/known"), "navigate", "document"), 403);
}

#[test]
fn never_waits_for_body() {
    let (port, token) = (served().port(), &served().token);
    for length in
        ["0", "1", "100000000000000", "18446744073709551615", "99999999999999999999", "-1"]
    {
        for (path, expected) in [("/".to_owned(), 404), (format!("/{token}/known"), 413)] {
            let expected = if length == "0" && expected == 413 { 405 } else { expected };
            let (status, _) = ask(&format!(
                "POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Length: {length}\r\n\r\n"
            ));
            assert_eq!(status, expected, "{path} {length}");
        }
    }
    for announced in ["Content-Length: 5", "Transfer-Encoding: chunked"] {
        assert_eq!(get(&format!("/{token}/known"), &format!("{announced}\r\n")).0, 413);
    }
}

#[test]
fn refuses_large_heads_and_other_protocols() {
    let (port, token) = (served().port(), &served().token);
    let path = format!("/{token}/known");
    assert_eq!(get(&path, &format!("X: {}\r\n", "x".repeat(8 << 10))).0, 200);
    assert_eq!(get(&path, &format!("X: {}\r\n", "x".repeat(64 << 10))).0, 431);
    assert_eq!(get(&path, &"X: x\r\n".repeat(200)).0, 431);
    assert_eq!(ask("SSH-2.0-OpenSSH_9.9\r\n\r\n").0, 400);
    assert_eq!(ask("\u{16}\u{3}\u{1}\r\n\r\n").0, 400);
    // Sent byte by byte, it is the same request.
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    for byte in format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n").bytes() {
        stream.write_all(&[byte]).unwrap();
    }
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
}

#[test]
fn refuses_methods_other_than_get() {
    let (port, token) = (served().port(), &served().token);
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "HEAD"] {
        let (status, _) = ask(&format!(
            "{method} /{token}/known HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Length: 0\r\n\
             Connection: close\r\n\r\n"
        ));
        assert_eq!(status, 405, "{method}");
    }
}
