//! `run.json` of any content.
#![no_main]

use std::path::PathBuf;
use std::sync::OnceLock;

use gammachi_analyzer::trace::run_json::{RUN_JSON, RunJson};
use libfuzzer_sys::fuzz_target;

fn directory() -> &'static PathBuf {
    static DIRECTORY: OnceLock<PathBuf> = OnceLock::new();
    DIRECTORY.get_or_init(|| {
        let path = PathBuf::from(format!("/dev/shm/gammachi-fuzz-json-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("/dev/shm is writable");
        path
    })
}

fuzz_target!(|data: &[u8]| {
    std::fs::write(directory().join(RUN_JSON), data).expect("/dev/shm has space");
    if let Ok(run) = RunJson::read(directory()) {
        let text = serde_json::to_string(&run).expect("a parsed document can be written");
        let again: RunJson = serde_json::from_str(&text).expect("a written document can be parsed");
        // NaN is not equal to itself, but JSON has no NaN.
        assert_eq!(run, again);
    }
});
