//! Keeps descriptors that this process inherited away from the functions it starts.

use std::fs;
use std::io;
use std::os::fd::{BorrowedFd, RawFd};

use rustix::io::{Errno, FdFlags, fcntl_getfd, fcntl_setfd};

/// Marks every open descriptor but 0, 1 and 2 close-on-exec. What Rust opens is marked already; what this
/// process was started with need not be.
pub(crate) fn close_inherited_on_exec() -> io::Result<()> {
    for entry in fs::read_dir("/proc/self/fd")? {
        let name = entry?.file_name();
        let Some(number) = name.to_str().and_then(|name| name.parse::<RawFd>().ok()) else { continue };
        if number <= 2 {
            continue;
        }
        // SAFETY: the number is only used for the two fcntl calls below. They change nothing but the
        // close-on-exec flag, which is what every descriptor of this process is to have: should the number
        // be closed or mean another file by now, the calls fail with EBADF or do what is right there too.
        #[allow(unsafe_code)]
        let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
        let marked =
            fcntl_getfd(descriptor).and_then(|flags| fcntl_setfd(descriptor, flags | FdFlags::CLOEXEC));
        match marked {
            Ok(()) | Err(Errno::BADF) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
