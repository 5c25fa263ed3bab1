//! What we say about an object in its status, and what of that is not there yet.
//!
//! The status is shared with other components. Ours alone are the generation we observed, the condition Ready
//! and the executors; the error is whoever's failure it tells of, so that we write it only about our own, and
//! take away only what we wrote.

use api::ExecutorStatus;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Map, Value, json};

use super::Seen;
use crate::routing::Verdict;

/// Errors that begin so are ours.
const OURS: &str = "function-runner: ";
/// More of them help nobody, and a status must stay small.
const MOST_PROBLEMS: usize = 10;
const LONGEST_MESSAGE: usize = 4096;

const READY: &str = "Ready";

/// What we say about an object.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Opinion {
    generation: i64,
    error: Option<String>,
    reason: String,
    message: String,
    executors: Vec<ExecutorStatus>,
}

impl Opinion {
    /// What there is to say after an object was looked at.
    pub(super) fn of(verdict: &Verdict) -> Self {
        let Verdict { generation, problems, unknown, executors } = verdict;
        let mut message = listed(problems.iter().map(|(_, problem)| problem.as_str()), problems.len());
        let error = (!problems.is_empty()).then(|| shortened(&format!("{OURS}{message}")));
        if problems.is_empty() {
            "everything is in force".clone_into(&mut message);
        }
        if !unknown.is_empty() {
            let fields = listed(unknown.iter().map(String::as_str), unknown.len());
            message = format!("{message}; passed over, as this release does not know it: {fields}");
        }
        let reason = problems.iter().map(|(reason, _)| *reason).min();
        Self {
            generation: *generation,
            error,
            reason: reason.map_or_else(|| "Applied".to_owned(), |reason| reason.to_string()),
            message: shortened(&message),
            executors: executors.clone(),
        }
    }

    /// The status to write; `None` if everything is there. `additions` are fields that Porch's own definition of
    /// the kind does not have.
    pub(super) fn missing_in(&self, seen: &Seen, additions: bool, now: &Time) -> Option<Value> {
        let status = &seen.status;
        let mut missing = Map::new();
        if status["functionRunnerObservedGeneration"] != self.generation {
            missing.insert("functionRunnerObservedGeneration".to_owned(), self.generation.into());
        }
        let there = status["error"].as_str();
        match &self.error {
            Some(error) if there != Some(error) => drop(missing.insert("error".to_owned(), json!(error))),
            None if there.is_some_and(|there| there.starts_with(OURS)) => {
                missing.insert("error".to_owned(), Value::Null);
            }
            _ => {}
        }
        if additions {
            missing.extend(self.missing_conditions(&status["conditions"], now));
            let executors = json!(self.executors);
            if status["executors"] != executors {
                missing.insert("executors".to_owned(), executors);
            }
        }
        (!missing.is_empty()).then_some(Value::Object(missing))
    }

    /// A list is replaced as a whole: what others wrote into it goes back as it was.
    fn missing_conditions(&self, there: &Value, now: &Time) -> Option<(String, Value)> {
        let there = there.as_array().map(Vec::as_slice).unwrap_or_default();
        let before = there.iter().find(|condition| condition["type"] == READY);
        let mut ready = json!({
            "type": READY,
            "status": if self.error.is_none() { "True" } else { "False" },
            "observedGeneration": self.generation,
            "reason": self.reason,
            "message": self.message,
        });
        let since = before.map_or(&Value::Null, |before| &before["lastTransitionTime"]);
        ready["lastTransitionTime"] = since.clone();
        if before == Some(&ready) {
            return None;
        }
        if since.is_null() || before.is_some_and(|before| before["status"] != ready["status"]) {
            ready["lastTransitionTime"] = json!(now);
        }
        let others = there.iter().filter(|condition| condition["type"] != READY).cloned();
        Some(("conditions".to_owned(), others.chain([ready]).collect()))
    }
}

fn listed<'a>(entries: impl Iterator<Item = &'a str>, count: usize) -> String {
    let shown = entries.take(MOST_PROBLEMS).collect::<Vec<_>>().join("; ");
    match count.saturating_sub(MOST_PROBLEMS) {
        0 => shown,
        more => format!("{shown}; and {more} more"),
    }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(LONGEST_MESSAGE) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::jiff::Timestamp;

    use super::*;
    use crate::routing::Reason;

    fn seen(status: Value) -> Seen {
        Seen {
            uid: String::new(),
            resource_version: "1".to_owned(),
            is_going: false,
            finalizers: Vec::new(),
            status,
        }
    }

    fn now() -> Time {
        Time(Timestamp::from_second(1_700_000_000).unwrap())
    }

    fn verdict(problems: &[(Reason, &str)]) -> Verdict {
        let executors = vec![ExecutorStatus { type_: "pod".to_owned(), ..ExecutorStatus::default() }];
        let problems = problems.iter().map(|(reason, text)| (*reason, (*text).to_owned())).collect();
        Verdict { generation: 3, problems, unknown: Vec::new(), executors }
    }

    #[test]
    fn what_is_there_is_not_written_again() {
        for problems in [&[][..], &[(Reason::Invalid, "spec.image: is missing")]] {
            let opinion = Opinion::of(&verdict(problems));
            let status = opinion.missing_in(&seen(Value::Null), true, &now()).unwrap();
            assert_eq!(opinion.missing_in(&seen(status), true, &now()), None);
            let status = opinion.missing_in(&seen(Value::Null), false, &now()).unwrap();
            assert!(status.get("conditions").is_none() && status.get("executors").is_none());
            assert_eq!(opinion.missing_in(&seen(status), false, &now()), None);
        }
    }

    #[test]
    fn the_whole_status() {
        let opinion = Opinion::of(&verdict(&[(Reason::Conflict, "a"), (Reason::Invalid, "b")]));
        let status = opinion.missing_in(&seen(json!({})), true, &now()).unwrap();
        let expected = json!({
            "functionRunnerObservedGeneration": 3,
            "error": "function-runner: a; b",
            "conditions": [{
                "type": "Ready",
                "status": "False",
                "observedGeneration": 3,
                "reason": "Invalid",
                "message": "a; b",
                "lastTransitionTime": "2023-11-14T22:13:20Z",
            }],
            "executors": [{ "type": "pod" }],
        });
        assert_eq!(status, expected);
        let mut unknown = verdict(&[]);
        unknown.unknown = vec!["spec.wasmExecutor".to_owned()];
        let status = Opinion::of(&unknown).missing_in(&seen(json!({})), true, &now()).unwrap();
        assert_eq!(status["conditions"][0]["status"], "True");
        assert_eq!(status["conditions"][0]["reason"], "Applied");
        let message =
            "everything is in force; passed over, as this release does not know it: spec.wasmExecutor";
        assert_eq!(status["conditions"][0]["message"], message);
        assert_eq!(status.get("error"), None);
    }

    #[test]
    fn only_our_own_error_is_taken_away() {
        let fine = Opinion::of(&verdict(&[]));
        let error = |error: &str| {
            let status = json!({ "functionRunnerObservedGeneration": 3, "error": error });
            fine.missing_in(&seen(status), false, &now())
        };
        assert_eq!(error("porch-server: broken"), None);
        assert_eq!(error("function-runner: broken"), Some(json!({ "error": null })));
    }

    #[test]
    fn others_conditions_stay_and_times_change_only_with_the_state() {
        let other = json!({ "type": "Other", "status": "True" });
        let ready = json!({
            "type": "Ready", "status": "True", "observedGeneration": 2, "reason": "Applied",
            "message": "everything is in force", "lastTransitionTime": "2020-01-01T00:00:00Z",
        });
        let status = json!({ "conditions": [ready, other] });
        let written = Opinion::of(&verdict(&[])).missing_in(&seen(status.clone()), true, &now()).unwrap();
        assert_eq!(written["conditions"][0], other);
        assert_eq!(written["conditions"][1]["observedGeneration"], 3);
        assert_eq!(written["conditions"][1]["lastTransitionTime"], "2020-01-01T00:00:00Z");
        let broken = Opinion::of(&verdict(&[(Reason::Invalid, "b")]));
        let written = broken.missing_in(&seen(status), true, &now()).unwrap();
        assert_eq!(written["conditions"][1]["lastTransitionTime"], "2023-11-14T22:13:20Z");
    }

    #[test]
    fn a_status_stays_small_whatever_is_wrong() {
        let many = vec![(Reason::Invalid, "x"); 5000];
        let opinion = Opinion::of(&verdict(&many));
        assert!(opinion.message.ends_with("; and 4990 more"), "{}", opinion.message);
        let long = "é".repeat(100_000);
        let opinion = Opinion::of(&verdict(&[(Reason::Invalid, &long)]));
        assert!(opinion.message.len() < 10_000 && opinion.error.unwrap().len() < 10_000);
        // Whatever there is in the status.
        let opinion = Opinion::of(&verdict(&[]));
        for status in [json!(1), json!([]), json!({ "conditions": {}, "error": 5, "executors": "x" })] {
            assert!(opinion.missing_in(&seen(status), true, &now()).is_some());
        }
    }
}
