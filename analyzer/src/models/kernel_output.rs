//! The documents that a kernel of bench-kernels prints with `--json`, possibly among lines of a launcher.

use serde::de::DeserializeOwned;
use serde_json::Value;

/// The version that we read.
const VERSION: u64 = 1;

/// Why a text cannot be read as the documents of a kernel.
#[derive(Debug, thiserror::Error)]
pub enum KernelOutputError {
    /// There is no JSON document.
    #[error("contains no JSON document")]
    NoDocument,
    /// A document is cut off, or keys are missing or hold something else.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// A document is of another kernel or version.
    #[error("a document of {kernel}")]
    OtherKernel {
        /// Name of the kernel, and its version where that differs.
        kernel: String,
    },
    /// Figures that no measurement has.
    #[error("{0}")]
    Impossible(String),
}

/// Whether a text is the output of a kernel.
pub fn is_output(text: &str, kernel: &str) -> bool {
    values(text).is_ok_and(|values| values.first().is_some_and(|first| first["kernel"] == kernel))
}

/// Reads one or more documents of a kernel.
///
/// # Errors
/// See [`KernelOutputError`]; its last variant is left to callers.
pub fn documents<T: DeserializeOwned>(
    text: &str,
    kernel: &str,
) -> Result<Vec<T>, KernelOutputError> {
    let values = values(text)?;
    if values.is_empty() {
        return Err(KernelOutputError::NoDocument);
    }
    let read = |value: Value| {
        let version = &value["version"];
        if value["kernel"] != kernel || version != VERSION {
            let mut kernel = value["kernel"].as_str().unwrap_or("something else").to_owned();
            if version != VERSION {
                kernel += &format!(", version {version}");
            }
            return Err(KernelOutputError::OtherKernel { kernel });
        }
        Ok(serde_json::from_value(value)?)
    };
    values.into_iter().map(read).collect()
}

/// The documents of a text, each of which begins a line or follows another.
fn values(text: &str) -> Result<Vec<Value>, serde_json::Error> {
    let mut values = Vec::new();
    let mut rest = text;
    while let Some(begin) = begin_of_document(rest) {
        rest = &rest[begin..];
        let mut documents = serde_json::Deserializer::from_str(rest).into_iter();
        values.extend(documents.next().transpose()?);
        rest = &rest[documents.byte_offset()..];
    }
    Ok(values)
}

fn begin_of_document(text: &str) -> Option<usize> {
    let blank = text.len() - text.trim_start().len();
    match text[blank..].starts_with('{') {
        true => Some(blank),
        false => text.find("\n{").map(|line| line + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_documents_among_lines_of_a_launcher() {
        let one = r#"{"kernel": "cannon", "version": 1}"#;
        for text in [
            format!("{one}\n{one}\n"),
            format!("{one}{one}"),
            format!("a warning {{of mpirun}}\n{one}\nanother\n{one}\na last one"),
            format!("{}\n{one}", one.replace(", ", ",\n")),
        ] {
            assert!(is_output(&text, "cannon") && !is_output(&text, "roofline"), "{text}");
            assert_eq!(documents::<Value>(&text, "cannon").unwrap().len(), 2, "{text}");
        }
    }

    #[test]
    fn says_what_else_a_text_is() {
        let error = |text: &str| documents::<Value>(text, "cannon").unwrap_err().to_string();
        assert_eq!(error("mpirun: not found"), "contains no JSON document");
        assert_eq!(error(r#"{"kernel": "lattice", "version": 1}"#), "a document of lattice");
        assert_eq!(
            error(r#"{"kernel": "cannon", "version": 2}"#),
            "a document of cannon, version 2"
        );
        assert_eq!(error(r#"{"version": 1}"#), "a document of something else");
        assert!(error(r#"{"kernel": "cannon", "vers"#).starts_with("EOF while parsing"));
    }
}
