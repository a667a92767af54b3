//! Loads the OTF2 library at run time: [`Otf2Library`] holds its functions.
//!
//! This library is the only documentation of OTF2's files, so exports and imports use it instead of
//! a second implementation; nothing else needs it. Signatures are those of OTF2 3.x, soname
//! `libotf2.so.10` (Debian: `libopen-trace-format2.so.10`).

use std::ffi::{CStr, CString, OsString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use thiserror::Error;

/// Variable that names the library's file if it is not in a standard place.
pub const LIBRARY_VARIABLE: &str = trace_format::settings::OTF2_LIBRARY.name;

/// The library cannot be loaded, or one of its functions failed.
#[derive(Debug, Error)]
pub enum Otf2Error {
    /// The file that [`LIBRARY_VARIABLE`] names cannot be loaded.
    #[error("{LIBRARY_VARIABLE}={}: cannot be loaded", .0.display())]
    NamedLibrary(PathBuf),
    /// The loader finds no OTF2 library.
    #[error(
        "the OTF2 library (libotf2.so.10, version 3) is not found: install it (Debian: \
         libopen-trace-format2-10), or name its file in {LIBRARY_VARIABLE} (where Score-P is \
         installed: lib/libotf2.so.10)"
    )]
    NoLibrary,
    /// A library of another version.
    #[error("{}: it has no function {function}; OTF2 3.x is needed", .library.display())]
    OtherVersion {
        /// The library's file.
        library: PathBuf,
        /// The missing function.
        function: &'static str,
    },
    /// An error that the library describes.
    #[error("{0}")]
    Described(String),
    /// An error that the library does not describe.
    #[error("OTF2 error {0}")]
    Code(Code),
    /// The archive cannot be made.
    #[error("OTF2 cannot make the archive ({0})")]
    Create(std::io::Error),
    /// The archive's path contains a zero byte.
    #[error("{0}")]
    Path(#[from] std::ffi::NulError),
    /// The library returned no writer for a rank's events.
    #[error("OTF2 returns no writer for rank {0}")]
    NoEventWriter(u32),
    /// The library returned no writer of definitions.
    #[error("OTF2 returns no writer of definitions")]
    NoDefinitionWriter,
    /// The archive has no definitions.
    #[error("it has no global definitions")]
    NoDefinitions,
    /// A location has no event file.
    #[error("its event file cannot be opened")]
    NoEvents,
    /// The location of a rank is not defined.
    #[error("a rank's location is not defined")]
    UndefinedLocation,
    /// The archive contains only accelerators or metrics.
    #[error("it has no process that ran on a processor")]
    NoProcess,
}

/// An object of the library.
pub type Object = *mut c_void;
/// OTF2_ErrorCode; 0 is success.
pub type Code = c_int;

/// Decides whether a buffer is written.
pub type PreFlush = unsafe extern "C" fn(*mut c_void, u8, u64, *mut c_void, bool) -> u8;

/// OTF2_FlushCallbacks.
#[repr(C)]
#[derive(Debug)]
pub struct FlushCallbacks {
    /// Called before writing.
    pub pre: PreFlush,
    /// Called after writing; `None`: flushes leave no record in the archive.
    pub post: Option<unsafe extern "C" fn(*mut c_void, u8, u64) -> u64>,
}

/// OTF2_CallbackCode: continue.
pub const CALLBACK_SUCCESS: c_int = 0;
/// OTF2_FLUSH: write the buffer.
pub const FLUSH: u8 = 1;
/// Undefined value of 32 bits.
pub const UNDEFINED_32: u32 = u32::MAX;
/// Undefined value of 64 bits.
pub const UNDEFINED_64: u64 = u64::MAX;

macro_rules! functions {
    ($($(#[$attribute:meta])* fn $name:ident($($argument:ty),*) $(-> $result:ty)?;)*) => {
        /// Functions of the library, by their names without `OTF2_`.
        #[allow(non_snake_case)] // The library's own names.
        #[derive(Debug, Clone, Copy)]
        pub struct Otf2Library {
            $($(#[$attribute])* pub $name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
        }

        impl Otf2Library {
            fn resolve(handle: *mut c_void) -> Result<Self, &'static str> {
                Ok(Self { $($name: {
                    let name = concat!("OTF2_", stringify!($name), "\0");
                    // SAFETY: the handle is that of an open library, and the name ends with a zero.
                    let address = unsafe { libc::dlsym(handle, name.as_ptr().cast()) };
                    if address.is_null() {
                        return Err(name.trim_end_matches('\0'));
                    }
                    // SAFETY: the function of this name has this signature in every OTF2 3.x, which the
                    // soname guarantees; a function pointer is as wide as an address.
                    unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($argument),*) $(-> $result)?>(address) }
                },)* })
            }
        }
    };
}

functions! {
    /// Text of an error.
    fn Error_GetDescription(Code) -> *const c_char;
    /// Sets the callback for errors.
    fn Error_RegisterCallback(*const c_void, *mut c_void) -> *const c_void;
    /// Opens an archive for writing.
    fn Archive_Open(*const c_char, *const c_char, u8, u64, u64, u8, u8) -> Object;
    fn Archive_Close(Object) -> Code;
    /// Sets the callbacks that decide about flushing.
    fn Archive_SetFlushCallbacks(Object, *const FlushCallbacks, *mut c_void) -> Code;
    /// Declares that a single process writes.
    fn Archive_SetSerialCollectiveCallbacks(Object) -> Code;
    fn Archive_SetCreator(Object, *const c_char) -> Code;
    /// Opens the event files.
    fn Archive_OpenEvtFiles(Object) -> Code;
    /// Closes them.
    fn Archive_CloseEvtFiles(Object) -> Code;
    /// Opens the files of local definitions.
    fn Archive_OpenDefFiles(Object) -> Code;
    /// Closes them.
    fn Archive_CloseDefFiles(Object) -> Code;
    /// Writer of a location's events.
    fn Archive_GetEvtWriter(Object, u64) -> Object;
    fn Archive_CloseEvtWriter(Object, Object) -> Code;
    /// Writer of a location's definitions.
    fn Archive_GetDefWriter(Object, u64) -> Object;
    fn Archive_CloseDefWriter(Object, Object) -> Code;
    /// Writer of the global definitions.
    fn Archive_GetGlobalDefWriter(Object) -> Object;
    fn Archive_CloseGlobalDefWriter(Object, Object) -> Code;
    fn AttributeList_New() -> Object;
    fn AttributeList_Delete(Object) -> Code;
    /// Adds an attribute: list, attribute, value.
    fn AttributeList_AddUint64(Object, u32, u64) -> Code;
    /// Reads one.
    fn AttributeList_GetUint64(Object, u32, *mut u64) -> Code;
    /// Resolution, offset, length, realtime.
    fn GlobalDefWriter_WriteClockProperties(Object, u64, u64, u64, u64) -> Code;
    /// Self, text.
    fn GlobalDefWriter_WriteString(Object, u32, *const c_char) -> Code;
    /// Self, name, description, type.
    fn GlobalDefWriter_WriteAttribute(Object, u32, u32, u32, u8) -> Code;
    /// Self, name, class, parent.
    fn GlobalDefWriter_WriteSystemTreeNode(Object, u32, u32, u32, u32) -> Code;
    /// Self, name, type, parent, creator.
    fn GlobalDefWriter_WriteLocationGroup(Object, u32, u32, u8, u32, u32) -> Code;
    /// Group, name, type, value.
    fn GlobalDefWriter_WriteLocationGroupProperty(Object, u32, u32, u8, u64) -> Code;
    /// Self, name, type, events, group.
    fn GlobalDefWriter_WriteLocation(Object, u64, u32, u8, u64, u32) -> Code;
    /// Self, name, canonical name, description, role, paradigm, flags, file, begin, end.
    fn GlobalDefWriter_WriteRegion(Object, u32, u32, u32, u32, u8, u8, u32, u32, u32, u32) -> Code;
    /// Self, name, type, paradigm, flags, count, members.
    fn GlobalDefWriter_WriteGroup(Object, u32, u32, u8, u8, u32, u32, *const u64) -> Code;
    /// Self, file, line.
    fn GlobalDefWriter_WriteSourceCodeLocation(Object, u32, u32, u32) -> Code;
    /// Self, region, source code location, parent.
    fn GlobalDefWriter_WriteCallingContext(Object, u32, u32, u32, u32) -> Code;
    /// Self, name, mode, base, exponent, period.
    fn GlobalDefWriter_WriteInterruptGenerator(Object, u32, u32, u8, u8, i64, u64) -> Code;
    /// Self, name, group, parent, flags.
    fn GlobalDefWriter_WriteComm(Object, u32, u32, u32, u32, u32) -> Code;
    /// Self, name, both groups, common communicator, flags.
    fn GlobalDefWriter_WriteInterComm(Object, u32, u32, u32, u32, u32, u32) -> Code;
    /// Self, identification, name, class, flags, properties: count, names, types, values.
    fn GlobalDefWriter_WriteIoParadigm(Object, u8, u32, u32, u8, u32, u8, *const u8, *const u8, *const u64) -> Code;
    /// Self, name, scope.
    fn GlobalDefWriter_WriteIoRegularFile(Object, u32, u32, u32) -> Code;
    /// Self, name, file, paradigm, flags, communicator, parent.
    fn GlobalDefWriter_WriteIoHandle(Object, u32, u32, u32, u8, u32, u32, u32) -> Code;
    /// Handle, access mode, status flags.
    fn GlobalDefWriter_WriteIoPreCreatedHandleState(Object, u32, u8, u32) -> Code;
    /// Attributes, time, region.
    fn EvtWriter_Enter(Object, Object, u64, u32) -> Code;
    /// Attributes, time, region.
    fn EvtWriter_Leave(Object, Object, u64, u32) -> Code;
    /// Attributes, time, calling context, unwind distance, interrupt generator.
    fn EvtWriter_CallingContextSample(Object, Object, u64, u32, u32, u32) -> Code;
    /// Attributes, time, receiver, communicator, tag, length.
    fn EvtWriter_MpiSend(Object, Object, u64, u32, u32, u32, u64) -> Code;
    /// As MpiSend, and the request.
    fn EvtWriter_MpiIsend(Object, Object, u64, u32, u32, u32, u64, u64) -> Code;
    /// Attributes, time, request.
    fn EvtWriter_MpiIsendComplete(Object, Object, u64, u64) -> Code;
    /// Attributes, time, request.
    fn EvtWriter_MpiIrecvRequest(Object, Object, u64, u64) -> Code;
    /// Attributes, time, sender, communicator, tag, length.
    fn EvtWriter_MpiRecv(Object, Object, u64, u32, u32, u32, u64) -> Code;
    /// As MpiRecv, and the request.
    fn EvtWriter_MpiIrecv(Object, Object, u64, u32, u32, u32, u64, u64) -> Code;
    /// Attributes, time, request.
    fn EvtWriter_MpiRequestTest(Object, Object, u64, u64) -> Code;
    /// Attributes, time, request.
    fn EvtWriter_MpiRequestCancelled(Object, Object, u64, u64) -> Code;
    /// Attributes, time.
    fn EvtWriter_MpiCollectiveBegin(Object, Object, u64) -> Code;
    /// Attributes, time, operation, communicator, root, sent, received.
    fn EvtWriter_MpiCollectiveEnd(Object, Object, u64, u8, u32, u32, u64, u64) -> Code;
    /// Attributes, time, request.
    fn EvtWriter_NonBlockingCollectiveRequest(Object, Object, u64, u64) -> Code;
    /// As MpiCollectiveEnd, and the request.
    fn EvtWriter_NonBlockingCollectiveComplete(Object, Object, u64, u8, u32, u32, u64, u64, u64) -> Code;
    /// Attributes, time, handle, mode, flags, bytes, matching identifier.
    fn EvtWriter_IoOperationBegin(Object, Object, u64, u32, u8, u32, u64, u64) -> Code;
    /// Attributes, time, handle, bytes, matching identifier.
    fn EvtWriter_IoOperationComplete(Object, Object, u64, u32, u64, u64) -> Code;
    /// Number of events written.
    fn EvtWriter_GetNumberOfEvents(Object, *mut u64) -> Code;
    /// Opens an archive by its anchor file.
    fn Reader_Open(*const c_char) -> Object;
    fn Reader_Close(Object) -> Code;
    /// Declares that a single process reads.
    fn Reader_SetSerialCollectiveCallbacks(Object) -> Code;
    /// Reader of the global definitions.
    fn Reader_GetGlobalDefReader(Object) -> Object;
    /// Reader, definition reader, callbacks, data.
    fn Reader_RegisterGlobalDefCallbacks(Object, Object, Object, *mut c_void) -> Code;
    /// Reads all records and counts them.
    fn Reader_ReadAllGlobalDefinitions(Object, Object, *mut u64) -> Code;
    /// Selects a location for reading.
    fn Reader_SelectLocation(Object, u64) -> Code;
    /// Opens the files of local definitions.
    fn Reader_OpenDefFiles(Object) -> Code;
    /// Closes them.
    fn Reader_CloseDefFiles(Object) -> Code;
    /// Opens the event files.
    fn Reader_OpenEvtFiles(Object) -> Code;
    /// Closes them.
    fn Reader_CloseEvtFiles(Object) -> Code;
    /// Reader of a location's definitions.
    fn Reader_GetDefReader(Object, u64) -> Object;
    /// Reads all records and counts them.
    fn Reader_ReadAllLocalDefinitions(Object, Object, *mut u64) -> Code;
    fn Reader_CloseDefReader(Object, Object) -> Code;
    /// Reader of a location's events.
    fn Reader_GetEvtReader(Object, u64) -> Object;
    /// Reader, event reader, callbacks, data.
    fn Reader_RegisterEvtCallbacks(Object, Object, Object, *mut c_void) -> Code;
    /// Reads all records and counts them.
    fn Reader_ReadAllLocalEvents(Object, Object, *mut u64) -> Code;
    fn Reader_CloseEvtReader(Object, Object) -> Code;
    /// Callbacks of definitions.
    fn GlobalDefReaderCallbacks_New() -> Object;
    /// Deletes them.
    fn GlobalDefReaderCallbacks_Delete(Object);
    fn GlobalDefReaderCallbacks_SetClockPropertiesCallback(Object, *const c_void) -> Code;
    fn GlobalDefReaderCallbacks_SetStringCallback(Object, *const c_void) -> Code;
    fn GlobalDefReaderCallbacks_SetAttributeCallback(Object, *const c_void) -> Code;
    fn GlobalDefReaderCallbacks_SetSystemTreeNodeCallback(Object, *const c_void) -> Code;
    fn GlobalDefReaderCallbacks_SetLocationGroupCallback(Object, *const c_void) -> Code;
    fn GlobalDefReaderCallbacks_SetLocationGroupPropertyCallback(Object, *const c_void) -> Code;
    fn GlobalDefReaderCallbacks_SetLocationCallback(Object, *const c_void) -> Code;
    fn GlobalDefReaderCallbacks_SetRegionCallback(Object, *const c_void) -> Code;
    fn GlobalDefReaderCallbacks_SetGroupCallback(Object, *const c_void) -> Code;
    fn GlobalDefReaderCallbacks_SetCommCallback(Object, *const c_void) -> Code;
    fn GlobalDefReaderCallbacks_SetInterCommCallback(Object, *const c_void) -> Code;
    /// Callbacks of events.
    fn EvtReaderCallbacks_New() -> Object;
    /// Deletes them.
    fn EvtReaderCallbacks_Delete(Object);
    fn EvtReaderCallbacks_SetEnterCallback(Object, *const c_void) -> Code;
    fn EvtReaderCallbacks_SetLeaveCallback(Object, *const c_void) -> Code;
    fn EvtReaderCallbacks_SetMpiSendCallback(Object, *const c_void) -> Code;
    fn EvtReaderCallbacks_SetMpiIsendCallback(Object, *const c_void) -> Code;
    fn EvtReaderCallbacks_SetMpiIsendCompleteCallback(Object, *const c_void) -> Code;
    fn EvtReaderCallbacks_SetMpiIrecvRequestCallback(Object, *const c_void) -> Code;
    fn EvtReaderCallbacks_SetMpiRecvCallback(Object, *const c_void) -> Code;
    fn EvtReaderCallbacks_SetMpiIrecvCallback(Object, *const c_void) -> Code;
    fn EvtReaderCallbacks_SetMpiRequestTestCallback(Object, *const c_void) -> Code;
    fn EvtReaderCallbacks_SetMpiRequestCancelledCallback(Object, *const c_void) -> Code;
    fn EvtReaderCallbacks_SetMpiCollectiveBeginCallback(Object, *const c_void) -> Code;
    fn EvtReaderCallbacks_SetMpiCollectiveEndCallback(Object, *const c_void) -> Code;
    fn EvtReaderCallbacks_SetNonBlockingCollectiveRequestCallback(Object, *const c_void) -> Code;
    fn EvtReaderCallbacks_SetNonBlockingCollectiveCompleteCallback(Object, *const c_void) -> Code;
}

/// Keeps the library from writing to standard error: our own messages report the codes that it
/// returns.
unsafe extern "C" fn quiet(
    _data: *mut c_void,
    _file: *const c_char,
    _line: u64,
    _function: *const c_char,
    code: Code,
    _format: *const c_char,
    _arguments: *mut c_void,
) -> Code {
    code
}

impl Otf2Library {
    /// Finds the library: the file that [`LIBRARY_VARIABLE`] names, or where the loader looks.
    ///
    /// # Errors
    /// It is not found, cannot be loaded, or is of another version.
    pub fn load() -> Result<Self, Otf2Error> {
        let named = std::env::var_os(LIBRARY_VARIABLE).filter(|name| !name.is_empty());
        let candidates: Vec<OsString> = match &named {
            Some(file) => vec![file.clone()],
            None => vec!["libotf2.so.10".into(), "libopen-trace-format2.so.10".into()],
        };
        for candidate in &candidates {
            let Ok(name) = CString::new(candidate.as_bytes()) else { continue };
            // SAFETY: loads a library by name; its initialisers are OTF2's own.
            let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
            if handle.is_null() {
                continue;
            }
            let library = Self::resolve(handle).map_err(|function| Otf2Error::OtherVersion {
                library: candidate.into(),
                function,
            })?;
            let quiet: *const c_void = quiet as *const c_void;
            // SAFETY: the callback has the signature that the library expects and keeps no data; a
            // `va_list` argument is passed as a pointer on x86-64 and AArch64, and not used.
            unsafe { (library.Error_RegisterCallback)(quiet, std::ptr::null_mut()) };
            return Ok(library);
        }
        Err(match named {
            Some(file) => Otf2Error::NamedLibrary(file.into()),
            None => Otf2Error::NoLibrary,
        })
    }

    /// Turns what a function returned into a result.
    pub fn check(&self, code: Code) -> Result<(), Otf2Error> {
        if code == 0 {
            return Ok(());
        }
        // SAFETY: for any code the library returns a text of its own that is never freed.
        let text = unsafe { (self.Error_GetDescription)(code) };
        if text.is_null() {
            return Err(Otf2Error::Code(code));
        }
        // SAFETY: checked above, and it ends with a zero.
        let text = unsafe { CStr::from_ptr(text) };
        Err(Otf2Error::Described(text.to_string_lossy().into_owned()))
    }
}
