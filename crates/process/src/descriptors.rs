//! The descriptors of this process: how many there may be, and those that it inherited kept away from the
//! functions it starts.

use std::fs;
use std::io;
use std::os::fd::{BorrowedFd, RawFd};

use rustix::io::{Errno, FdFlags, fcntl_getfd, fcntl_setfd};
use rustix::process::{Resource, getrlimit};

/// What this process has open for itself: files, sockets, what the runtime needs.
const OWN: usize = 32;
/// What a running function takes: its pipes, its process, its folder.
const OF_A_FUNCTION: usize = 8;

/// How many descriptors may be used for other things while so many functions run, a quarter of all at least.
pub fn spare_descriptors(functions: usize) -> usize {
    let limit = getrlimit(Resource::Nofile).current.and_then(|limit| usize::try_from(limit).ok());
    limit.map_or(usize::MAX, |limit| spare_of(limit, functions))
}

fn spare_of(limit: usize, functions: usize) -> usize {
    limit.saturating_sub(OWN.saturating_add(functions.saturating_mul(OF_A_FUNCTION))).max(limit / 4)
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_come_first_and_something_is_always_left() {
        assert_eq!(spare_of(1024, 4), 960);
        assert_eq!(spare_of(1024, usize::MAX), 256);
        assert_eq!(spare_of(64, 4), 16);
        assert_eq!(spare_of(0, 4), 0);
        assert!(spare_descriptors(1) > 0);
    }
}
