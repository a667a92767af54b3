//! Names are chosen by programs and may have any length; everything that shows or aligns them may
//! rely on [`MAX_NAME_BYTES`].

use crate::encoding::checksum;
use crate::header::Definition;

/// Longest name that a reader returns: a path may be that long, and text is aligned only up to
/// 65,535 characters.
pub const MAX_NAME_BYTES: usize = 4096;

/// A name of at most [`MAX_NAME_BYTES`]. A longer one is cut and ends with its length and checksum,
/// so that names that begin alike still differ.
pub fn limited(mut name: String) -> String {
    if name.len() > MAX_NAME_BYTES {
        let end = format!("… ({} bytes, {:08x})", name.len(), checksum(name.as_bytes()));
        let most = MAX_NAME_BYTES - end.len();
        name.truncate((0..=most).rfind(|at| name.is_char_boundary(*at)).unwrap_or(0));
        name.push_str(&end);
    }
    name
}

/// Limits every name of a definition.
pub(super) fn limit(definition: &mut Definition) {
    let name = match definition {
        Definition::Region { name, .. }
        | Definition::CommunicatorName { name, .. }
        | Definition::Object { name, .. }
        | Definition::Stopped { reason: name, .. }
        | Definition::Processor { model: name } => name,
        Definition::Counter(counter) => &mut counter.name,
        Definition::Module(module) => &mut module.path,
        Definition::Sampling(sampling) => &mut sampling.unavailable,
        Definition::Code(code) => {
            code.identity = limited(std::mem::take(&mut code.identity));
            &mut code.path
        }
        _ => return,
    };
    *name = limited(std::mem::take(name));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_cut_and_still_differ() {
        assert_eq!(limited("solve".into()), "solve");
        assert_eq!(limited("a".repeat(MAX_NAME_BYTES)), "a".repeat(MAX_NAME_BYTES));
        let [first, second] = ["x", "y"].map(|end| limited("é".repeat(40_000) + end));
        assert!(first.len() <= MAX_NAME_BYTES && first.len() > MAX_NAME_BYTES - 4);
        assert!(first.starts_with("éé") && first.contains("… (80001 bytes, "), "{first}");
        assert_ne!(first, second);
    }
}
