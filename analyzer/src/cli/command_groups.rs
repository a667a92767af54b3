//! The help of `gammachi` itself: subcommands grouped by task.

use clap::Command;

/// Groups in the order in which a user needs them, with their subcommands.
const GROUPS: [(&str, &[&str]); 6] = [
    ("Record a program", &["run", "exec", "collect", "doctor"]),
    ("Look at a run", &["report", "why", "view", "dump", "top", "watch"]),
    ("Compare runs", &["compare", "check"]),
    ("Predict", &["sweep", "scaling", "model", "whatif"]),
    ("Measure the machine", &["calibrate", "roofline"]),
    ("Exchange with other tools", &["export", "import"]),
];

/// Gives the command its grouped help.
pub fn command(command: Command) -> Command {
    let help = help(&command);
    command.override_help(help)
}

fn help(command: &Command) -> String {
    let about =
        |command: &Command| command.get_about().map(ToString::to_string).unwrap_or_default();
    let mut text = format!("{}\n\nUsage: gammachi <COMMAND>\n", about(command));
    for (title, names) in GROUPS {
        text.push_str(&format!("\n{title}:\n"));
        for name in names {
            let about = command.find_subcommand(name).map(about).unwrap_or_default();
            text.push_str(&format!("  {name:<12} {about}\n"));
        }
    }
    text + "\nOptions:\n  -h, --help     Print help; gammachi COMMAND --help explains a command\n  \
            -V, --version  Print version\n\nExample:\n  gammachi run -- mpirun -n 4 ./app input.dat\n  \
            gammachi report\n"
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::CommandLine;

    #[test]
    fn lists_every_subcommand_once_on_one_line() {
        // What packagers need is hidden.
        let command = CommandLine::command();
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
        let mut all: Vec<&str> = command
            .get_subcommands()
            .filter(|command| !command.is_hide_set())
            .map(Command::get_name)
            .collect();
        assert!(all.len() <= 20, "{all:?}: is there a command that this belongs to?");
        grouped.sort_unstable();
        all.sort_unstable();
        assert_eq!(grouped, all);
        let help = help(&command);
        let long: Vec<&str> = help.lines().filter(|line| line.chars().count() > 88).collect();
        assert!(long.is_empty(), "{long:#?}");
    }
}
