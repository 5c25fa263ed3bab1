//! What a function finds when it starts, and what is said when it cannot.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)] // a test may

mod common;

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;

use bytes::Bytes;
use common::*;
use process::{Environment, Folder, Program, RunError, Supervisor};

async fn start_error(program: &Program) -> (ErrorKind, String) {
    match supervisor().run(program, Bytes::new(), &LIMITS).await {
        Err(error @ RunError::Start { .. }) => {
            let text = error.to_string();
            let RunError::Start { source, .. } = error else { unreachable!() };
            (source.kind(), text)
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_cannot_be_started_is_said() {
    block_on(async {
        let scratch = scratch();
        let file = |name: &str, content: &str, mode: u32| {
            let path = scratch.place().join(name);
            fs::write(&path, content).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            path
        };
        let missing = scratch.place().join("missing");
        let locked = file("locked", "#!/bin/sh\n", 0o644);
        let text = file("text", "just text\n", 0o755);
        let empty = file("empty", "", 0o755);
        let orphaned = file("orphaned", "#!/no/such/interpreter\n", 0o755);
        let windows = file("windows", "#!/bin/sh\r\ncat\r\n", 0o755);
        for (path, kind, words) in [
            (missing, Some(ErrorKind::NotFound), "; the file is missing"),
            (scratch.place().to_path_buf(), Some(ErrorKind::PermissionDenied), "; the file is not a file"),
            (locked, Some(ErrorKind::PermissionDenied), "(chmod +x is missing)"),
            (text, None, "#!"),
            (empty, None, "; the file is empty"),
            (orphaned, Some(ErrorKind::NotFound), "the interpreter \"/no/such/interpreter\""),
            (windows, Some(ErrorKind::NotFound), "CRLF"),
            ("no-such-program".into(), Some(ErrorKind::NotFound), "; there is no such program in PATH"),
        ] {
            for folder in [Folder::None, Folder::Temporary(scratch.clone()), Folder::Working(scratch.clone())]
            {
                let (found, text) = start_error(&Program { folder, ..program(&path, &[]) }).await;
                assert!(kind.is_none_or(|kind| kind == found), "{text}");
                assert!(text.contains(words) && text.contains(path.to_str().unwrap()), "{text}");
            }
        }
        supervisor().idle().await;
        assert_eq!(private_folders(&scratch), [] as [String; 0], "no private folder stays");
        fs::remove_dir_all(scratch.place()).unwrap();
    });
}

#[test]
fn too_much_or_forbidden_arguments_are_errors() {
    block_on(async {
        let huge = "x".repeat(200 << 10);
        let (kind, text) = start_error(&program("/bin/cat", &[&huge])).await;
        assert_eq!(kind, ErrorKind::ArgumentListTooLong);
        assert!(text.contains("too large") && text.len() < 300, "{text}");
        let environment = Environment::Clean([("HUGE".into(), huge.into())].into());
        let (kind, _) = start_error(&Program { environment, ..program("/bin/cat", &[]) }).await;
        assert_eq!(kind, ErrorKind::ArgumentListTooLong);
        let (kind, _) = start_error(&program("/bin/cat", &["a\0b"])).await;
        assert_eq!(kind, ErrorKind::InvalidInput);
        let (kind, _) = start_error(&program("", &[])).await;
        assert_eq!(kind, ErrorKind::NotFound);
    });
}

#[test]
fn a_clean_environment_is_exactly_what_was_given() {
    block_on(async {
        let environment = Environment::Clean([("ONE".into(), "1".into()), ("TWO".into(), "".into())].into());
        let env = Program { environment, ..program("/usr/bin/env", &[]) };
        let finished = supervisor().run(&env, Bytes::new(), &LIMITS).await.unwrap();
        let text = String::from_utf8(finished.output.to_vec()).unwrap();
        let names: Vec<_> = text.lines().map(|line| line.split_once('=').unwrap()).collect();
        let others: Vec<_> = names.iter().filter(|(name, _)| *name != "FUNCTION_CALL").collect();
        assert_eq!(others, [&("ONE", "1"), &("TWO", "")]);
        assert_eq!(names.len(), 3);

        let finished = supervisor().run(&program("/usr/bin/env", &[]), Bytes::new(), &LIMITS).await.unwrap();
        let text = String::from_utf8(finished.output.to_vec()).unwrap();
        let path = std::env::var("PATH").unwrap();
        assert!(text.lines().any(|line| line == format!("PATH={path}")));
    });
}

#[test]
fn bare_names_are_looked_up() {
    block_on(async {
        let found =
            |program| async move { supervisor().run(&program, Bytes::from("x"), &LIMITS).await.unwrap() };
        assert_eq!(found(program("cat", &[])).await.output.as_ref(), b"x");
        let environment = Environment::Clean([("PATH".into(), "/nonexistent:/bin".into())].into());
        assert_eq!(found(Program { environment, ..program("cat", &[]) }).await.output.as_ref(), b"x");
    });
}

#[test]
fn private_folders_are_where_they_should_be_and_go() {
    block_on(async {
        let scratch = scratch();
        let script = "pwd; echo $HOME; echo $TMPDIR; stat -c %a $TMPDIR; mkdir -p $TMPDIR/a/b/c; \
            i=0; while [ $i -lt 500 ]; do : >$TMPDIR/a/$i; i=$((i+1)); done; \
            ln -s / $TMPDIR/a/b/link; chmod 000 $TMPDIR/a/b/c $TMPDIR/a/b $TMPDIR/a $TMPDIR";
        let lines = |output: &[u8]| -> Vec<String> {
            String::from_utf8_lossy(output).lines().map(str::to_owned).collect()
        };
        let working = Program { folder: Folder::Working(scratch.clone()), ..shell(script, "none") };
        let finished = supervisor().run(&working, Bytes::new(), &LIMITS).await.unwrap();
        let working = lines(&finished.output);
        assert!(working[0].starts_with(scratch.place().to_str().unwrap()));
        assert_eq!((&working[0], &working[0]), (&working[1], &working[2]));
        assert_eq!(working[3], "700");

        let mut temporary = Program { folder: Folder::Temporary(scratch.clone()), ..shell(script, "none") };
        temporary.environment = Environment::Inherited;
        let finished = supervisor().run(&temporary, Bytes::new(), &LIMITS).await.unwrap();
        let temporary = lines(&finished.output);
        assert_eq!(temporary[0], std::env::current_dir().unwrap().to_str().unwrap());
        assert_eq!(temporary[1], std::env::var("HOME").unwrap_or_default());
        assert!(temporary[2].starts_with(scratch.place().to_str().unwrap()));
        assert_ne!(temporary[2], working[2]);

        // A function may remove its folder itself.
        let own = Program { folder: Folder::Working(scratch.clone()), ..shell("rm -r $TMPDIR", "none") };
        supervisor().run(&own, Bytes::new(), &LIMITS).await.unwrap();

        supervisor().idle().await;
        assert_eq!(private_folders(&scratch), [] as [String; 0]);
        fs::remove_dir_all(scratch.place()).unwrap();
        let error = supervisor().run(&own, Bytes::new(), &LIMITS).await.unwrap_err();
        assert!(matches!(error, RunError::Folder { .. }), "{error}");
        assert!(error.to_string().contains(scratch.place().to_str().unwrap()));
    });
}

#[test]
fn only_the_three_streams_are_handed_down() {
    block_on(async {
        assert!(fs::exists(format!("/proc/self/fd/{INHERITED}")).unwrap());
        let script = "for n in $(ls /proc/$$/fd); do echo $n; done";
        let finished = run_sh(script, b"", LIMITS).await.unwrap();
        let text = String::from_utf8(finished.output.to_vec()).unwrap();
        // The shell itself keeps a few of its own in the range it uses for that.
        let numbers: Vec<i32> = text.lines().map(|line| line.parse().unwrap()).collect();
        assert!(numbers.starts_with(&[0, 1, 2]) && !numbers.contains(&INHERITED), "{numbers:?}");
        assert!(numbers.len() <= 5, "{numbers:?}");
    });
}

#[test]
fn signals_are_at_their_defaults_and_the_group_is_its_own() {
    block_on(async {
        let finished = run_sh("cat /proc/self/status", b"", LIMITS).await.unwrap();
        let status = String::from_utf8(finished.output.to_vec()).unwrap();
        let field = |name: &str| {
            let line = status.lines().find(|line| line.starts_with(name)).unwrap();
            u64::from_str_radix(line.split_whitespace().nth(1).unwrap(), 16).unwrap()
        };
        assert_eq!(field("SigBlk:"), 0);
        assert_eq!(field("SigIgn:") & (1 << 12), 0, "SIGPIPE is not ignored");
        let finished = run_sh("echo $$; cut -d' ' -f5 /proc/$$/stat", b"", LIMITS).await.unwrap();
        let text = String::from_utf8(finished.output.to_vec()).unwrap();
        let (pid, group) = text.trim().split_once('\n').unwrap();
        assert_eq!(pid, group);
    });
}

#[test]
fn a_second_supervisor_is_refused() {
    supervisor();
    block_on(async {
        assert_eq!(Supervisor::start().unwrap_err().kind(), ErrorKind::AlreadyExists);
    });
}

#[test]
fn a_folder_is_as_new_for_every_call_whatever_the_one_before_did() {
    block_on(async {
        let scratch = scratch();
        let look = "pwd; ls -A; stat -c %a .";
        let mut seen = Vec::new();
        for before in ["true", "touch file .hidden", "chmod 777 .", "mkdir -p a/b", "chmod 000 .", "true"] {
            for script in [before, look] {
                let program = Program { folder: Folder::Working(scratch.clone()), ..shell(script, "none") };
                let finished = supervisor().run(&program, Bytes::new(), &LIMITS).await.unwrap();
                if script == look {
                    seen.push(String::from_utf8(finished.output.to_vec()).unwrap());
                }
                // Long enough for the folder to be kept for the next call, where it is fit for that.
                tokio::time::sleep(milliseconds(60)).await;
            }
        }
        for output in &seen {
            let lines: Vec<_> = output.lines().collect();
            assert!(lines.len() == 2 && lines[1] == "700", "{output}");
        }
        let names: std::collections::HashSet<_> = seen.iter().collect();
        assert_eq!(names.len(), seen.len(), "each call has a name of its own");
        // Unused ones go by themselves, too.
        eventually("all folders are gone", || private_folders(&scratch).is_empty()).await;
        fs::remove_dir_all(scratch.place()).unwrap();
    });
}

#[test]
fn what_a_function_does_to_its_folder_is_its_own_loss() {
    block_on(async {
        let (scratch, outside) = (scratch(), scratch());
        let kept = outside.place().join("kept");
        fs::write(&kept, "x").unwrap();
        let target = outside.place().display();
        let link_it = "cd /; rm -r $TMPDIR; ln -s";
        for script in [
            format!("{link_it} {target} $TMPDIR"),
            format!("{link_it} / $TMPDIR"),
            format!("{link_it} /nonexistent $TMPDIR"),
            "cd /; rm -r $TMPDIR; echo file >$TMPDIR".to_owned(),
            // The folder around it, too.
            "cd /; rm -r ${TMPDIR%/*}".to_owned(),
            "mv ${TMPDIR%/*} ${TMPDIR%/*}.moved".to_owned(),
            format!("cd /; mv ${{TMPDIR%/*}} {target}/moved; ln -s {target} ${{TMPDIR%/*}}"),
            "chmod 0 ${TMPDIR%/*}".to_owned(),
            "rm ${TMPDIR%/*}/.lock".to_owned(),
        ] {
            let run = async |script: &str| {
                let program = Program { folder: Folder::Working(scratch.clone()), ..shell(script, "none") };
                supervisor().run(&program, Bytes::new(), &LIMITS).await.unwrap()
            };
            run(&script).await;
            let next = run("ls -A; stat -c %a .; cd $TMPDIR; pwd >file; cat file").await;
            let next = String::from_utf8(next.output.to_vec()).unwrap();
            let lines: Vec<_> = next.lines().collect();
            assert!(lines.len() == 2 && lines[0] == "700", "after {script}: {next}");
            assert!(lines[1].starts_with(scratch.place().to_str().unwrap()), "after {script}: {next}");
            supervisor().idle().await;
            assert_eq!(private_folders(&scratch), [] as [String; 0], "after {script}");
        }
        assert!(kept.exists(), "a link was followed");
        for place in [scratch.place(), outside.place()] {
            fs::remove_dir_all(place).unwrap();
        }
    });
}
