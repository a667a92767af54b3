//! Builds images of rank files from a fuzzer's bytes.
//!
//! The bytes come from libFuzzer and stay short: this crate adds the padding to 64 KiB that the
//! format requires, and correct checksums if a target is to get past them.

pub mod stages;

use std::path::Path;

use trace_format::encoding::{checksum, encode, framed_bytes};
use trace_format::header::FileHeader;
use trace_format::layout::*;
use trace_format::reader::RankFile;

/// Functions of the files made here: one of each kind that the analyzer distinguishes.
pub const FUNCTIONS: &[&str] = &[
    "MPI_Init",
    "MPI_Init_thread",
    "MPI_Finalize",
    "MPI_Abort",
    "MPI_Comm_rank",
    "MPI_Comm_dup",
    "MPI_Comm_split",
    "MPI_Comm_free",
    "MPI_Comm_idup",
    "MPI_Send",
    "MPI_Ssend",
    "MPI_Isend",
    "MPI_Recv",
    "MPI_Irecv",
    "MPI_Sendrecv",
    "MPI_Isendrecv",
    "MPI_Send_init",
    "MPI_Recv_init",
    "MPI_Psend_init",
    "MPI_Precv_init",
    "MPI_Start",
    "MPI_Startall",
    "MPI_Wait",
    "MPI_Test",
    "MPI_Waitall",
    "MPI_Waitany",
    "MPI_Waitsome",
    "MPI_Testall",
    "MPI_Testany",
    "MPI_Cancel",
    "MPI_Request_free",
    "MPI_Probe",
    "MPI_Iprobe",
    "MPI_Mprobe",
    "MPI_Improbe",
    "MPI_Mrecv",
    "MPI_Imrecv",
    "MPI_Barrier",
    "MPI_Bcast",
    "MPI_Allreduce",
    "MPI_Ibarrier",
    "MPI_Iallreduce",
    "MPI_Barrier_init",
    "MPI_Alltoall",
    "MPI_Put",
    "MPI_Get",
    "MPI_Win_create",
    "MPI_Win_fence",
    "MPI_File_open",
    "MPI_File_write",
    "MPI_Pcontrol",
    "MPI_Type_size",
    "cblas_dgemm",
    "dtrsv_",
];

/// Takes pieces off the front of a fuzzer's bytes. Beyond their end, everything is zero or empty.
#[derive(Debug, Clone, Copy)]
pub struct Pieces<'a>(pub &'a [u8]);

impl<'a> Pieces<'a> {
    /// One byte.
    pub fn byte(&mut self) -> u8 {
        self.bytes(1).first().copied().unwrap_or(0)
    }

    /// `count` bytes, or what is left.
    pub fn bytes(&mut self, count: usize) -> &'a [u8] {
        let (piece, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        piece
    }

    /// Bytes preceded by their number, as u16.
    pub fn counted(&mut self) -> &'a [u8] {
        let count = u16::from(self.byte()) | u16::from(self.byte()) << 8;
        self.bytes(usize::from(count))
    }

    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Appends bytes preceded by their number, as [`Pieces::counted`] expects them.
pub fn push_counted(to: &mut Vec<u8>, bytes: &[u8]) {
    let bytes = &bytes[..bytes.len().min(usize::from(u16::MAX))];
    to.extend((bytes.len() as u16).to_le_bytes());
    to.extend(bytes);
}

/// A valid header.
pub fn sound_header() -> FileHeader {
    FileHeader {
        recorder_version: "0.1.0".into(),
        program: "/opt/bin/solver".into(),
        build_id: String::new(),
        arguments: vec!["./solver".into()],
        directory: "/opt".into(),
        host: "n0".into(),
        boot_id: "boot-n0".into(),
        mpi_library: "Open MPI v4.1.4".into(),
        mpi_family: "openmpi".into(),
        mpi_version: (3, 1),
        thread_level: 3,
        counter_invariant: true,
        compute: "outside".into(),
        parameters: vec![("N".into(), "4000".into())],
        affinity: vec![0],
        numa_node: 0,
        function_names: FUNCTIONS.join("\n"),
    }
}

/// The fixed part of a valid header.
pub fn sound_fixed(level: u8, rank: u32, world_size: u32) -> FixedHeader {
    FixedHeader {
        pid: 100 + rank,
        run_id: [7; 16],
        ..FixedHeader::new(CounterKind::Tsc, level, rank, world_size)
    }
}

/// The header area with correct checksums.
pub fn header_area(mut fixed: FixedHeader, payload: &[u8]) -> Vec<u8> {
    let payload = &payload[..payload.len().min(HEADER_BYTES as usize - FIXED_HEADER_BYTES)];
    fixed.payload_bytes = payload.len() as u32;
    fixed.payload_crc = checksum(payload);
    fixed.fixed_crc = checksum(&bytes_of(&fixed)[..FIXED_CRC_COVERS]);
    let mut area = bytes_of(&fixed).to_vec();
    area.extend(payload);
    area.resize(HEADER_BYTES as usize, 0);
    area
}

/// The header area of a valid file.
pub fn sound_area(level: u8, rank: u32, world_size: u32) -> Vec<u8> {
    let payload = encode(&sound_header()).unwrap_or_default();
    header_area(sound_fixed(level, rank, world_size), &payload)
}

/// Appends a chunk with a correct checksum.
pub fn push_chunk(file: &mut Vec<u8>, header: ChunkHeader, content: &[u8]) {
    let mut header = header;
    let (from, to) = CHUNK_CRC_COVERS;
    header.crc = checksum(&bytes_of(&header)[from..to]);
    file.extend(bytes_of(&header));
    file.extend(content);
    file.resize(file.len().next_multiple_of(CHUNK_GRANULE as usize), 0);
}

/// The header of a chunk with that many bytes of content.
pub fn chunk_header(kind: u16, thread: u32, sequence: u32, content: usize) -> ChunkHeader {
    ChunkHeader {
        magic: CHUNK_MAGIC,
        kind,
        flags: 0,
        thread,
        sequence,
        length: (CHUNK_HEADER_BYTES + content).next_multiple_of(CHUNK_GRANULE as usize) as u64,
        opened_ticks: 0,
        thread_os_id: 1 + thread,
        crc: 0,
        previous_minor_faults: 0,
        body_bytes: 0,
        body_crc: 0,
        clearing: 0,
    }
}

/// Frames records made from counted pieces, which gives the content of a definition chunk.
pub fn framed(pieces: &mut Pieces) -> Vec<u8> {
    let mut content = Vec::new();
    while !pieces.is_empty() {
        let payload = pieces.counted();
        if payload.is_empty() {
            break;
        }
        let end = content.len() + framed_bytes(payload.len());
        content.extend((payload.len() as u32).to_le_bytes());
        content.extend(checksum(payload).to_le_bytes());
        content.extend(payload);
        content.resize(end, 0);
    }
    content
}

/// Reads everything in an image and checks what every reader may rely on.
pub fn read_all(image: &[u8]) {
    let Ok(file) = RankFile::from_bytes(Path::new("image"), image) else { return };
    // An encoded chunk has at least its own header, and yields at most 64 MiB of slots.
    let max_slots = image.len() / CHUNK_HEADER_BYTES * (64 << 20) / SLOT_BYTES;
    for thread in &file.threads {
        let (mut previous, mut slots) = (0, 0);
        let mut events = file.events(thread);
        for event in events.by_ref() {
            assert!(event.begin >= previous, "events run backwards");
            assert!(
                event.end.is_none_or(|end| end >= event.begin),
                "an event ends before it begins"
            );
            previous = event.begin;
            slots += 1 + event.continuations;
            let requests = file.requests(&event).count();
            assert!(requests <= event.continuations);
            let _ = file.message(&event);
            let _ = file.function_name(event.function);
        }
        assert!(slots <= max_slots, "more events than the file has room for");
        let _ = events.damage().map(ToString::to_string);
    }
    assert!(file.diagnoses.len() <= image.len(), "more damage than bytes");
}
