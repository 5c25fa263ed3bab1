//! OCI images of the programs, made of nothing but static programs and a few
//! files, without a container engine. What is in them stands in `catalogue`.

pub mod catalogue;
pub mod layer;
pub mod layout;
pub mod program;
pub mod roots;
pub mod time;

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
};

use anyhow::Context as _;

use crate::{catalogue::Programs, layout::Written, program::Program, time::Timestamp};

/// What is built from what.
#[derive(Debug)]
pub struct Order {
    /// The folder of the static programs.
    pub programs: PathBuf,
    /// The certificate authorities: a file, or a folder of files.
    pub roots: PathBuf,
    /// Where the layouts go, one folder each.
    pub out: PathBuf,
    /// Where the unpacked files go, for builders that want them.
    pub rootfs: Option<PathBuf>,
    /// The commit, where known.
    pub revision: Option<String>,
    /// The time that all files bear.
    pub time: Timestamp,
}

/// Builds all images; what was written, in the order of the catalogue.
pub fn build(order: &Order) -> anyhow::Result<Vec<Written>> {
    let program = |name| Program::read(&order.programs.join(name));
    let programs = Programs {
        function_runner: program("function-runner")?,
        wrapper_server: program("wrapper-server")?,
        set_owner: program("set-owner")?,
        test_function: program("test-function")?,
    };
    let architecture = programs.architecture()?;
    let roots = roots::read(&order.roots)?;
    let images = catalogue::images(&programs, roots, order.time)?;
    let _lock = lock(&order.out)?;
    let mut written = Vec::new();
    for image in &images {
        let folder = order.out.join(image.name);
        let revision = order.revision.as_deref();
        let done = layout::write(image, architecture, revision, order.time, &folder)
            .with_context(|| format!("cannot write the image {}", folder.display()))?;
        written.push(done);
        if let Some(rootfs) = &order.rootfs {
            let folder = rootfs.join(image.name);
            unpack(image, &folder).with_context(|| format!("cannot unpack to {}", folder.display()))?;
        }
    }
    Ok(written)
}

/// Waits for others who write there; held until the file is dropped.
fn lock(folder: &Path) -> anyhow::Result<File> {
    let open = || {
        fs::create_dir_all(folder)?;
        let file = File::create(folder.join(".lock"))?;
        file.lock().map(|()| file)
    };
    open().with_context(|| format!("cannot write to {}", folder.display()))
}

/// Writes the files of an image into a folder of their own.
fn unpack(image: &catalogue::Image, folder: &Path) -> anyhow::Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    fs::create_dir_all(folder)?;
    for layer in &image.layers {
        layer.unpack(folder)?;
    }
    Ok(())
}
