//! Reads an archive's global [`Definitions`] through callbacks of the library.

use std::collections::{BTreeMap, HashMap};
use std::ffi::{CStr, c_char, c_int, c_void};

use crate::formats::otf2::library::{CALLBACK_SUCCESS, Object, Otf2Error, Otf2Library};
use crate::formats::otf2::names::{LOCATION_CPU_THREAD, TYPE_STRING};

/// A group of locations or ranks.
#[derive(Debug, Clone, Default)]
pub struct Group {
    /// OTF2_GroupType.
    pub kind: u8,
    /// OTF2_Paradigm.
    pub paradigm: u8,
    pub members: Vec<u64>,
}

#[derive(Debug, Clone, Copy)]
pub struct Comm {
    pub number: u32,
    /// String of its name.
    pub name: u32,
    pub groups: (u32, Option<u32>),
}

/// All global definitions, with the archive's numbers.
#[derive(Debug, Clone, Default)]
pub struct Definitions {
    /// Ticks per second, offset of all times, nanoseconds since 1970 at the offset.
    pub clock: Option<(u64, u64, u64)>,
    pub strings: HashMap<u32, String>,
    /// Name of each attribute.
    pub attributes: BTreeMap<u32, u32>,
    /// Name of each node of the machine.
    pub nodes: HashMap<u32, u32>,
    /// Node of each process.
    pub processes: BTreeMap<u32, u32>,
    /// Properties of processes: process, name, string value.
    pub properties: Vec<(u32, u32, u32)>,
    /// Process of each thread.
    pub threads: BTreeMap<u64, u32>,
    /// Number of locations that are not threads of a processor.
    pub other_locations: u64,
    /// Name and description of each region.
    pub regions: HashMap<u32, (u32, u32)>,
    pub groups: HashMap<u32, Group>,
    pub communicators: Vec<Comm>,
}

impl Definitions {
    pub fn text(&self, number: u32) -> &str {
        self.strings.get(&number).map_or("", String::as_str)
    }

    pub fn property(&self, process: u32, name: &str) -> Option<&str> {
        let mut all = self.properties.iter();
        let found = all.find(|(of, key, _)| *of == process && self.text(*key) == name)?;
        Some(self.text(found.2))
    }

    /// Reads the definitions with an open reader.
    pub fn read(library: &Otf2Library, reader: Object) -> Result<Self, Otf2Error> {
        let mut definitions = Self::default();
        let check = |code| library.check(code);
        let data: *mut c_void = (&raw mut definitions).cast();
        let mut count = 0;
        // SAFETY: the reader is open. The callbacks have the signatures of OTF2 3.x, are called
        // only by the functions below, and receive the definitions of this frame, which are not
        // used otherwise.
        unsafe {
            let from = (library.Reader_GetGlobalDefReader)(reader);
            if from.is_null() {
                return Err(Otf2Error::NoDefinitions);
            }
            let callbacks = (library.GlobalDefReaderCallbacks_New)();
            let set = [
                (
                    library.GlobalDefReaderCallbacks_SetClockPropertiesCallback,
                    clock as *const c_void,
                ),
                (library.GlobalDefReaderCallbacks_SetStringCallback, string as *const c_void),
                (library.GlobalDefReaderCallbacks_SetAttributeCallback, attribute as *const c_void),
                (library.GlobalDefReaderCallbacks_SetSystemTreeNodeCallback, node as *const c_void),
                (
                    library.GlobalDefReaderCallbacks_SetLocationGroupCallback,
                    process as *const c_void,
                ),
                (
                    library.GlobalDefReaderCallbacks_SetLocationGroupPropertyCallback,
                    property as *const c_void,
                ),
                (library.GlobalDefReaderCallbacks_SetLocationCallback, location as *const c_void),
                (library.GlobalDefReaderCallbacks_SetRegionCallback, region as *const c_void),
                (library.GlobalDefReaderCallbacks_SetGroupCallback, group as *const c_void),
                (library.GlobalDefReaderCallbacks_SetCommCallback, comm as *const c_void),
                (
                    library.GlobalDefReaderCallbacks_SetInterCommCallback,
                    inter_comm as *const c_void,
                ),
            ];
            for (set, callback) in set {
                check(set(callbacks, callback))?;
            }
            check((library.Reader_RegisterGlobalDefCallbacks)(reader, from, callbacks, data))?;
            (library.GlobalDefReaderCallbacks_Delete)(callbacks);
            check((library.Reader_ReadAllGlobalDefinitions)(reader, from, &mut count))?;
        }
        Ok(definitions)
    }
}

/// The definitions of a callback.
///
/// # Safety
/// `data` is the pointer that [`Definitions::read`] registered.
unsafe fn definitions<'a>(data: *mut c_void) -> &'a mut Definitions {
    // SAFETY: guaranteed by the caller; the library calls back one record at a time.
    unsafe { &mut *data.cast() }
}

extern "C" fn clock(data: *mut c_void, hz: u64, offset: u64, _length: u64, unix: u64) -> c_int {
    // SAFETY: see `definitions`.
    unsafe { definitions(data) }.clock = Some((hz, offset, unix));
    CALLBACK_SUCCESS
}

extern "C" fn string(data: *mut c_void, number: u32, text: *const c_char) -> c_int {
    if !text.is_null() {
        // SAFETY: the library's texts end with a zero.
        let text = unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned();
        // SAFETY: see `definitions`.
        unsafe { definitions(data) }.strings.insert(number, text);
    }
    CALLBACK_SUCCESS
}

extern "C" fn attribute(data: *mut c_void, number: u32, name: u32, _what: u32, _kind: u8) -> c_int {
    // SAFETY: see `definitions`.
    unsafe { definitions(data) }.attributes.insert(number, name);
    CALLBACK_SUCCESS
}

extern "C" fn node(data: *mut c_void, number: u32, name: u32, _class: u32, _parent: u32) -> c_int {
    // SAFETY: see `definitions`.
    unsafe { definitions(data) }.nodes.insert(number, name);
    CALLBACK_SUCCESS
}

extern "C" fn process(
    data: *mut c_void,
    number: u32,
    _name: u32,
    _kind: u8,
    node: u32,
    _creator: u32,
) -> c_int {
    // SAFETY: see `definitions`.
    unsafe { definitions(data) }.processes.insert(number, node);
    CALLBACK_SUCCESS
}

extern "C" fn property(
    data: *mut c_void,
    of_process: u32,
    name: u32,
    kind: u8,
    value: u64,
) -> c_int {
    if kind == TYPE_STRING {
        // SAFETY: see `definitions`.
        unsafe { definitions(data) }.properties.push((of_process, name, value as u32));
    }
    CALLBACK_SUCCESS
}

extern "C" fn location(
    data: *mut c_void,
    number: u64,
    _name: u32,
    kind: u8,
    _events: u64,
    process: u32,
) -> c_int {
    // SAFETY: see `definitions`.
    let definitions = unsafe { definitions(data) };
    if kind == LOCATION_CPU_THREAD {
        definitions.threads.insert(number, process);
    } else {
        definitions.other_locations += 1;
    }
    CALLBACK_SUCCESS
}

#[allow(clippy::too_many_arguments)] // The library's signature.
extern "C" fn region(
    data: *mut c_void,
    number: u32,
    name: u32,
    _canonical: u32,
    description: u32,
    _role: u8,
    _paradigm: u8,
    _flags: u32,
    _file: u32,
    _begin: u32,
    _end: u32,
) -> c_int {
    // SAFETY: see `definitions`.
    unsafe { definitions(data) }.regions.insert(number, (name, description));
    CALLBACK_SUCCESS
}

#[allow(clippy::too_many_arguments)] // The library's signature.
extern "C" fn group(
    data: *mut c_void,
    number: u32,
    _name: u32,
    kind: u8,
    paradigm: u8,
    _flags: u32,
    count: u32,
    members: *const u64,
) -> c_int {
    let members = match members.is_null() || count == 0 {
        true => Vec::new(),
        // SAFETY: the library passes `count` members.
        false => unsafe { std::slice::from_raw_parts(members, count as usize) }.to_vec(),
    };
    // SAFETY: see `definitions`.
    unsafe { definitions(data) }.groups.insert(number, Group { kind, paradigm, members });
    CALLBACK_SUCCESS
}

extern "C" fn comm(
    data: *mut c_void,
    number: u32,
    name: u32,
    group: u32,
    _parent: u32,
    _flags: u32,
) -> c_int {
    // SAFETY: see `definitions`.
    unsafe { definitions(data) }.communicators.push(Comm { number, name, groups: (group, None) });
    CALLBACK_SUCCESS
}

extern "C" fn inter_comm(
    data: *mut c_void,
    number: u32,
    name: u32,
    a: u32,
    b: u32,
    _common: u32,
    _flags: u32,
) -> c_int {
    // SAFETY: see `definitions`.
    unsafe { definitions(data) }.communicators.push(Comm { number, name, groups: (a, Some(b)) });
    CALLBACK_SUCCESS
}
