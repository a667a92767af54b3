//! Paraver's `.prv`, `.pcf` and `.row` files, as Extrae writes them.

pub mod names;
pub mod read;
pub mod write;

pub use read::import;
pub use write::write;
