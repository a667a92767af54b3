//! OTF2 archives that follow Score-P's conventions. OTF2's own library reads and writes them.

pub mod library;
pub mod names;
pub mod read;
pub mod write;

pub use read::import;
pub use write::write;
