//! Figures of a watched run for Prometheus: in a file for node exporter's textfile collector, or on a port of this host.

use std::fs;
use std::io::Write;
use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::error::eprint_message;
use super::view::server::serve_text;
use crate::whole_file::{self, SHARED};

/// Time between two writings at least. Prometheus asks less often.
const PUBLISHED: Duration = Duration::from_secs(1);
/// What is appended to the place for figures of each rank.
const BY_RANK: &str = ",ranks";
const MEDIA: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Where the figures of a run can be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetricsPlace {
    target: Target,
    /// Whether they are given for each rank, not as sums.
    pub by_rank: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Target {
    File(PathBuf),
    Port(u16),
}

impl FromStr for MetricsPlace {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (place, by_rank) = match text.strip_suffix(BY_RANK) {
            Some(place) => (place, true),
            None => (text, false),
        };
        let is_number = !place.is_empty() && place.bytes().all(|byte| byte.is_ascii_digit());
        let target = match (is_number, place.parse()) {
            (true, Ok(port @ 1..)) => Target::Port(port),
            (true, _) => {
                return Err("not a port from 1 to 65535, and no file: write ./NUMBER".to_owned());
            }
            (false, _) if place.is_empty() => return Err("neither a file nor a port".to_owned()),
            (false, _) => Target::File(place.into()),
        };
        Ok(Self { target, by_rank })
    }
}

/// As it is parsed.
impl std::fmt::Display for MetricsPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.target {
            Target::File(path) => path.display().fmt(f)?,
            Target::Port(port) => port.fmt(f)?,
        }
        f.write_str(if self.by_rank { BY_RANK } else { "" })
    }
}

/// Publishes the figures of a run while it exists.
pub struct Publisher {
    place: MetricsPlace,
    /// What is served.
    text: Arc<Mutex<String>>,
    published: Option<Instant>,
    /// Whether it was told that they cannot be written.
    has_failed: bool,
}

impl Publisher {
    /// Begins to serve them, if they are not written into a file.
    ///
    /// # Errors
    /// The port cannot be used.
    pub fn begin(place: &MetricsPlace) -> Result<Self, String> {
        let text = Arc::new(Mutex::new("# EOF\n".to_owned()));
        if let Target::Port(port) = place.target {
            let cannot = |error| format!("metrics cannot be served on port {port}: {error}");
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(cannot)?;
            let served = text.clone();
            let current = move || served.lock().unwrap_or_else(PoisonError::into_inner).clone();
            std::thread::spawn(move || serve_text(&listener, "/metrics", MEDIA, &current));
        }
        Ok(Self { place: place.clone(), text, published: None, has_failed: false })
    }

    /// Publishes figures, if that was long enough ago; `text` is told whether they are those of each rank.
    pub fn publish(&mut self, text: impl FnOnce(bool) -> String) {
        if self.published.is_some_and(|last| last.elapsed() < PUBLISHED) {
            return;
        }
        self.published = Some(Instant::now());
        let text = text(self.place.by_rank);
        let Target::File(path) = &self.place.target else {
            *self.text.lock().unwrap_or_else(PoisonError::into_inner) = text;
            return;
        };
        let written = whole_file::write(path, SHARED, |file| file.write_all(text.as_bytes()));
        if let Err(error) = written
            && !std::mem::replace(&mut self.has_failed, true)
        {
            eprint_message(&format!("{}: metrics cannot be written: {error}", path.display()));
        }
    }
}

/// What is no longer true is removed.
impl Drop for Publisher {
    fn drop(&mut self) {
        if let Target::File(path) = &self.place.target {
            let _ = fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn place_is_a_port_or_a_file() {
        for text in ["9101", "9101,ranks", "/var/lib/x.prom", "a,b.prom,ranks", "./9101"] {
            assert_eq!(text.parse::<MetricsPlace>().unwrap().to_string(), text);
        }
        let port = MetricsPlace { target: Target::Port(9101), by_rank: true };
        assert_eq!("9101,ranks".parse(), Ok(port));
        for text in ["", ",ranks", "0", "65536"] {
            assert!(text.parse::<MetricsPlace>().is_err(), "{text}");
        }
    }

    #[test]
    fn file_is_there_as_long_as_it_is_true() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.prom");
        let mut publisher = Publisher::begin(&path.to_str().unwrap().parse().unwrap()).unwrap();
        publisher.publish(|by_rank| format!("{by_rank}"));
        publisher.publish(|_| "too soon".to_owned());
        assert_eq!(fs::read_to_string(&path).unwrap(), "false");
        drop(publisher);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
    }
}
