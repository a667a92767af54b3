//! Definition records of any content with correct checksums, and their meaning.
#![no_main]

use std::path::Path;

use gammachi_analyzer::trace::RankFacts;
use images::{Pieces, chunk_header, framed, push_chunk, sound_area};
use libfuzzer_sys::fuzz_target;
use trace_format::layout::CHUNK_DEFINITIONS;
use trace_format::reader::RankFile;

fuzz_target!(|data: &[u8]| {
    let content = framed(&mut Pieces(data));
    let mut image = sound_area(1, 0, 1);
    push_chunk(&mut image, chunk_header(CHUNK_DEFINITIONS, 0, 0, content.len()), &content);
    if let Ok(file) = RankFile::from_bytes(Path::new("image"), &image) {
        let facts = RankFacts::from_definitions(&file.definitions);
        assert!(facts.anchors.len() + facts.exchanges.len() <= file.definitions.len());
    }
});
