//! The processed profile format of the Firefox Profiler, <https://profiler.firefox.com>.

pub mod write;

pub use write::write;
