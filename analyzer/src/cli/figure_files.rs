//! The option that writes figures as SVG files into a directory.

use std::fs;
use std::path::PathBuf;

use clap::Args;

use super::error::{CommandError, Context, eprint_message};
use super::output_file;

#[derive(Debug, Clone, Default, Args)]
pub struct FigureOptions {
    /// Write the figures as SVG files into this directory; created if missing
    #[arg(long, value_name = "DIR")]
    pub figures: Option<PathBuf>,
}

impl FigureOptions {
    /// Draws and writes the figures if they are asked for, and prints their names.
    pub fn write<Name: AsRef<str>>(
        &self,
        draw: impl FnOnce() -> Vec<(Name, String)>,
    ) -> Result<(), CommandError> {
        let Some(directory) = &self.figures else { return Ok(()) };
        let shown = directory.display();
        fs::create_dir_all(directory)
            .context(CommandError::Output, format_args!("--figures: {shown}: cannot be made"))?;
        let figures = draw();
        for (name, svg) in &figures {
            output_file::write(&directory.join(name.as_ref()), svg)?;
        }
        let names: Vec<&str> = figures.iter().map(|(name, _)| name.as_ref()).collect();
        match names.is_empty() {
            true => eprint_message("--figures: there is nothing to draw"),
            false => eprint_message(&format!("figures in {shown}: {}", names.join(", "))),
        }
        Ok(())
    }
}
