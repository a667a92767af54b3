//! Which file of a process holds an address of code.

use trace_format::header::{Definition, Module};
use trace_format::samples::INTERPRETED;

/// The modules listed in a rank's file.
pub(crate) fn modules(definitions: &[Definition]) -> Vec<&Module> {
    let modules = definitions.iter().filter_map(|definition| match definition {
        Definition::Module(module) => Some(module),
        _ => None,
    });
    modules.collect()
}

/// The interpreted functions of a rank's file, each of which is like a module.
pub(crate) fn code_of(definitions: &[Definition]) -> impl Iterator<Item = &Module> {
    definitions.iter().filter_map(|definition| match definition {
        Definition::Code(code) => Some(code),
        _ => None,
    })
}

/// The call that returns to an address lies before it. Of an interpreted function it is the call's own line.
pub(crate) fn call_before(address: u64) -> u64 {
    if address & INTERPRETED == 0 { address.saturating_sub(1) } else { address }
}

/// The module that an address belonged to at a moment: the last one mapped there before.
pub(crate) fn module_of(modules: &[&Module], address: u64, ticks: u64) -> Option<usize> {
    modules
        .iter()
        .rposition(|module| (module.begin..module.end).contains(&address) && module.ticks <= ticks)
}

/// Path and identity of a module, both empty if it is not known, and an address in its file.
pub(crate) fn in_file(module: Option<&Module>, address: u64) -> (&str, &str, u64) {
    let (path, id, base) =
        module.map_or(("", "", 0), |m| (m.path.as_str(), m.identity.as_str(), m.base));
    (path, id, address.wrapping_sub(base))
}
