//! Builds the images of the programs in `target/release`.

use std::{
    env,
    ffi::OsString,
    io::Write as _,
    path::PathBuf,
    process::{self, ExitCode},
};

use flags::{Command, Flag, Flags, Group, Mistakes, Outcome};
use images::{Order, time::Timestamp};

const PROGRAMS: Flag<PathBuf> =
    Flag::path("programs", "target/release", "Folder of the static programs.").placeholder("FOLDER");
const OUT: Flag<PathBuf> =
    Flag::path("out", "target/images", "Where the OCI layouts go, a folder each.").placeholder("FOLDER");
const ROOTFS: Flag<PathBuf> =
    Flag::path("rootfs", "", "Where the unpacked files go as well, a folder each; empty means nowhere.")
        .placeholder("FOLDER");
const CA_ROOTS: Flag<PathBuf> = Flag::path(
    "ca-roots",
    "/usr/share/ca-certificates/mozilla",
    "Certificate authorities: a file, or a folder of .crt and .pem files.",
)
.placeholder("PATH");

static COMMAND: Command = Command {
    name: "images",
    usage: "[flags]",
    summary: "Builds the OCI images without a container engine. SOURCE_DATE_EPOCH gives their time.",
    groups: &[Group {
        heading: "Flags",
        flags: &[PROGRAMS.spec(), OUT.spec(), ROOTFS.spec(), CA_ROOTS.spec()],
    }],
};

fn main() -> ExitCode {
    let outcome = match COMMAND.parse(env::args_os().skip(1)) {
        Outcome::Help => Ok(COMMAND.help()),
        Outcome::Flags(flags) => run(flags),
    };
    let (text, code) = match outcome {
        Ok(text) => (writeln!(std::io::stdout(), "{}", text.trim_end()), ExitCode::SUCCESS),
        Err(error) => (writeln!(std::io::stderr(), "images: {error:#}"), ExitCode::FAILURE),
    };
    if text.is_ok() { code } else { ExitCode::FAILURE }
}

fn run(flags: Flags) -> anyhow::Result<String> {
    use std::fmt::Write as _;
    let time = env::var("SOURCE_DATE_EPOCH").ok();
    let order = order(flags, Timestamp::from_source_date_epoch(time.as_deref())?)?;
    let mut table = String::new();
    for image in images::build(&order)? {
        let (compressed, unpacked) = (image.compressed as u64 / 1000, image.unpacked / 1000);
        let name = format!("oci:{}", order.out.join(image.name).display());
        let sizes = format!("{compressed:>6} kB, unpacked {unpacked:>6} kB");
        writeln!(table, "{name:<42} {:<72} {sizes}", image.digest)?;
    }
    Ok(table)
}

fn order(mut flags: Flags, time: Timestamp) -> Result<Order, Mistakes> {
    flags.refuse_arguments();
    let order = Order {
        programs: flags.get(&PROGRAMS),
        roots: flags.get(&CA_ROOTS),
        out: flags.get(&OUT),
        rootfs: Some(flags.get(&ROOTFS)).filter(|path| !path.as_os_str().is_empty()),
        revision: revision(),
        time,
    };
    flags.finish(order)
}

/// The commit of the checkout, where this is one.
fn revision() -> Option<String> {
    let arguments = ["rev-parse", "HEAD"].map(OsString::from);
    let output = process::Command::new("git").args(arguments).stderr(process::Stdio::null()).output().ok()?;
    let text = String::from_utf8(output.stdout).ok().filter(|_| output.status.success())?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}
