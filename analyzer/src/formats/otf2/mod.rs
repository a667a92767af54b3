//! OTF2 archives, by the conventions of Score-P. OTF2's own library reads and writes them.

pub mod library;
pub mod names;
pub mod read;
pub mod write;

pub use read::import;
pub use write::write;
