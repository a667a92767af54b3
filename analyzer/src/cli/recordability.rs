//! Finds out why a program cannot be recorded.
//!
//! Preloading requires a dynamic linker that obeys `LD_PRELOAD`, and calls of `MPI_*` that leave
//! the object that makes them. What the program's file shows is certain and is reported while the
//! run starts. What can only be inferred from an empty run directory is reported after it.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use object::elf::{DF_SYMBOLIC, DT_FLAGS, DT_SYMBOLIC, PT_DYNAMIC, PT_INTERP};
use object::read::elf::{ElfFile64, FileHeader, ProgramHeader};
use object::{Endianness, Object, ObjectSymbol};
use rustix::process::{getegid, geteuid};
use trace_format::file_map::FileMap;
use trace_format::regular_file;

use super::program_search::base_name;

/// First bytes of a script.
const SHEBANG: &[u8] = b"#!";
const ELF_MAGIC: &[u8] = b"\x7fELF";

/// What the file of an executable or library reveals about MPI and the dynamic linker.
#[derive(Debug, Default, PartialEq, Eq)]
struct Binary {
    /// The dynamic linker that loads it; `None` for static executables and libraries.
    interpreter: Option<PathBuf>,
    /// Linked with `-Bsymbolic`: its own definitions take precedence over preloaded ones.
    is_symbolic: bool,
    /// It contains an MPI library: it defines `PMPI_Init`.
    defines_mpi: bool,
    /// It calls MPI_Init, MPI_Init_thread or MPI_Session_init (or Fortran's names) of another object.
    calls_mpi: bool,
}

/// Why the program certainly cannot be recorded; `None` if its file shows no reason.
pub fn obstacle(program: &Path) -> Option<String> {
    if let Some(why) = privileges(program) {
        return Some(why);
    }
    let data = mapped(program).filter(|data| data.starts_with(ELF_MAGIC))?;
    let binary = read_binary(&data)?;
    if binary.interpreter.is_none() {
        return Some(
            "it is linked statically: no dynamic linker runs that could load the recorder; link it \
             with the MPI's shared library (without -static)"
                .into(),
        );
    }
    if binary.defines_mpi {
        return Some(
            "it has an MPI library linked into it (libmpi.a or libmpich.a), so its MPI calls never \
             leave it; link it with the MPI's shared library"
                .into(),
        );
    }
    symbolic_library(program, &binary).map(|library| {
        format!(
            "its library {} contains an MPI library and is linked with -Bsymbolic, so its MPI calls \
             never leave it; link it without -Bsymbolic",
            library.display()
        )
    })
}

/// Likely reasons why nothing was recorded, for a program whose file shows none.
pub fn likely_reasons(words: &[OsString], program: Option<&Path>) -> String {
    if let Some(word) = clears_environment(words) {
        return format!(
            "`{word}` takes LD_PRELOAD out of the environment; put `gammachi exec --` right \
             before the program"
        );
    }
    let Some(program) = program else {
        return "the program was not found on this host; is it an MPI program, and does the \
                launcher keep the environment? `gammachi exec --` right before the program sets it \
                there"
            .into();
    };
    let shown = program.display();
    let data = mapped(program);
    let data = data.as_deref().unwrap_or_default();
    if data.starts_with(SHEBANG) {
        return format!(
            "{shown} is a script: does what it starts call MPI_Init and keep the environment \
             (LD_PRELOAD)? `gammachi exec --` right before the program sets it there"
        );
    }
    let Some(binary) = read_binary(data) else {
        return format!("{shown} is not a program for this kind of machine");
    };
    let libraries = libraries(program, &binary);
    let has_mpi = libraries.iter().any(|(_, library)| library.defines_mpi);
    if !has_mpi && !binary.calls_mpi {
        return format!(
            "no process initialised MPI under the recorder, and no MPI library is among the \
             libraries of {shown}: is it an MPI program? (One that loads MPI by dlopen is recorded \
             all the same, if it calls MPI_Init.)"
        );
    }
    format!(
        "{shown} is linked with MPI, but no process initialised MPI under the recorder: it ended \
         before, or something between the launcher and the program clears LD_PRELOAD, or the \
         recorder cannot be read on the host that ran it; `gammachi exec --` right before the \
         program sets it there"
    )
}

/// The word of the command that makes programs start without the recorder's environment.
fn clears_environment(words: &[OsString]) -> Option<String> {
    let text = |word: &OsStr| word.to_string_lossy().into_owned();
    for (at, word) in words.iter().enumerate() {
        let next = words.get(at + 1).map(|word| text(word)).unwrap_or_default();
        let base = text(base_name(word));
        match (base.as_str(), next.as_str()) {
            ("env", "-i" | "-" | "--ignore-environment") => return Some(format!("env {next}")),
            ("env", "-u" | "--unset") if words.get(at + 2).is_some_and(|w| w == "LD_PRELOAD") => {
                return Some(format!("env {next} LD_PRELOAD"));
            }
            ("sudo" | "su" | "runuser", _) => return Some(base),
            ("-genvnone", _) => return Some(base),
            ("--export", "NONE" | "NIL") => return Some(format!("--export {next}")),
            ("--export=NONE" | "--export=NIL", _) => return Some(base),
            _ => {}
        }
    }
    None
}

/// Whether the program is set-user-id or set-group-id: the dynamic linker ignores LD_PRELOAD if
/// that changes the user or group.
fn privileges(program: &Path) -> Option<String> {
    let metadata = fs::metadata(program).ok()?;
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    let what = if metadata.mode() & libc::S_ISUID != 0 && metadata.uid() != user {
        format!("setuid to user {}", metadata.uid())
    } else if metadata.mode() & libc::S_ISGID != 0 && metadata.gid() != group {
        format!("setgid to group {}", metadata.gid())
    } else {
        return None;
    };
    Some(format!(
        "it is {what}: the dynamic linker ignores LD_PRELOAD for it; record a copy without that bit \
         (cp keeps none)"
    ))
}

/// A file's contents, of which only what is looked at is read.
fn mapped(path: &Path) -> Option<FileMap> {
    regular_file::open(path).and_then(|file| FileMap::of_file(&file)).ok()
}

fn read_binary(data: &[u8]) -> Option<Binary> {
    let file = ElfFile64::<Endianness>::parse(data).ok()?;
    let endian = file.endian();
    let mut binary = Binary::default();
    for header in file.elf_header().program_headers(endian, data).ok()? {
        match header.p_type(endian) {
            PT_INTERP => {
                let path = header.interpreter(endian, data).ok().flatten();
                binary.interpreter =
                    path.map(|path| PathBuf::from(String::from_utf8_lossy(path).into_owned()));
            }
            PT_DYNAMIC => {
                let entries = header.dynamic(endian, data).ok().flatten().unwrap_or_default();
                binary.is_symbolic |= entries.iter().any(|entry| {
                    let (tag, value) = (entry.d_tag.get(endian), entry.d_val.get(endian));
                    tag == u64::from(DT_SYMBOLIC)
                        || tag == u64::from(DT_FLAGS) && value & u64::from(DF_SYMBOLIC) != 0
                });
            }
            _ => {}
        }
    }
    file.dynamic_symbols().for_each(|symbol| binary.note(&symbol));
    // What calls another object's MPI has none of its own, and the other table may be long.
    if !binary.calls_mpi {
        file.symbols().for_each(|symbol| binary.note(&symbol));
    }
    Some(binary)
}

impl Binary {
    fn note<'data>(&mut self, symbol: &impl ObjectSymbol<'data>) {
        match symbol.name() {
            Ok("PMPI_Init") if symbol.is_definition() => self.defines_mpi = true,
            Ok(
                "MPI_Init" | "MPI_Init_thread" | "MPI_Session_init" | "mpi_init_"
                | "mpi_init_thread_" | "mpi_session_init_",
            ) if symbol.is_undefined() => self.calls_mpi = true,
            _ => {}
        }
    }
}

/// The library whose MPI calls do not leave it, unless there are MPI calls elsewhere.
fn symbolic_library(program: &Path, binary: &Binary) -> Option<PathBuf> {
    if binary.calls_mpi {
        return None;
    }
    let libraries = libraries(program, binary);
    if libraries.iter().any(|(_, library)| library.calls_mpi) {
        return None;
    }
    let keeps_calls = |library: &Binary| library.defines_mpi && library.is_symbolic;
    libraries.into_iter().find(|(_, library)| keeps_calls(library)).map(|(path, _)| path)
}

/// The libraries that the program's dynamic linker would load. None of them is run.
fn libraries(program: &Path, binary: &Binary) -> Vec<(PathBuf, Binary)> {
    let Some(linker) = &binary.interpreter else { return Vec::new() };
    let output = Command::new(linker)
        .arg("--list")
        .arg(program)
        .env_remove("LD_PRELOAD")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let text = text.unwrap_or_default();
    let paths = text.lines().filter_map(|line| {
        let (_, path) = line.split_once("=> ")?;
        Some(PathBuf::from(path.rsplit_once(" (")?.0))
    });
    paths.filter_map(|path| Some((path.clone(), read_binary(&mapped(&path)?)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(command: &str) -> Vec<OsString> {
        command.split_whitespace().map(OsString::from).collect()
    }

    #[test]
    fn names_word_that_clears_environment() {
        let named = |command: &str| clears_environment(&words(command)).unwrap_or_default();
        assert_eq!(named("mpirun -n 2 env -i ./app"), "env -i");
        assert_eq!(named("srun --export=NONE ./app"), "--export=NONE");
        assert_eq!(named("mpiexec -genvnone -n 2 ./app"), "-genvnone");
        assert_eq!(named("mpirun -n 2 env -u LD_PRELOAD ./app"), "env -u LD_PRELOAD");
        assert_eq!(named("mpirun -n 2 env A=1 ./app"), "");
    }
}
