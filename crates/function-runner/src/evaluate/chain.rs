//! The chain of evaluators, and the deadline that holds for all of it.

use wire::{Answer, Failure};

use super::{Call, Evaluator};

/// Evaluators in the order they are asked: built-in, exec, pod.
#[derive(Default)]
pub struct Chain {
    evaluators: Vec<Box<dyn Evaluator>>,
}

impl std::fmt::Debug for Chain {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_list().entries(self.evaluators.iter().map(|evaluator| evaluator.name())).finish()
    }
}

impl Chain {
    /// Adds an evaluator behind those already there.
    #[must_use]
    pub fn with(mut self, evaluator: impl Evaluator) -> Self {
        self.evaluators.push(Box::new(evaluator));
        self
    }

    /// Asks one evaluator after the other; only "not found" goes on to the
    /// next. The deadline holds, whatever an evaluator does.
    pub async fn evaluate(&self, call: &Call) -> Result<Answer, Failure> {
        let Some(deadline) = call.deadline else { return self.ask(call).await };
        tokio::select! {
            // The evaluator first: at the deadline it may know more than we do.
            biased;
            result = self.ask(call) => result,
            () = tokio::time::sleep_until(deadline) => Err(call.timed_out(String::new())),
        }
    }

    async fn ask(&self, call: &Call) -> Result<Answer, Failure> {
        let mut detail = None;
        for evaluator in &self.evaluators {
            call.progress.ask(evaluator.name());
            match evaluator.evaluate(call).await {
                // Of several that know more than "not found", the last was configured most expressly.
                Err(Failure::NotFound { detail: more, .. }) => detail = more.or(detail),
                result => return result,
            }
        }
        call.progress.nobody();
        Err(Failure::NotFound { image: call.asked(), detail })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bytes::Bytes;
    use registry::Reference;
    use tokio::time::Instant;
    use tonic::Code;
    use wire::TraceContext;

    use super::*;
    use crate::evaluate::{Progress, Stage};

    struct Scripted(&'static str, fn() -> Result<Answer, Failure>);

    #[tonic::async_trait]
    impl Evaluator for Scripted {
        fn name(&self) -> &'static str {
            self.0
        }
        async fn evaluate(&self, _: &Call) -> Result<Answer, Failure> {
            (self.1)()
        }
    }

    struct Stuck;

    #[tonic::async_trait]
    impl Evaluator for Stuck {
        fn name(&self) -> &'static str {
            "stuck"
        }
        async fn evaluate(&self, call: &Call) -> Result<Answer, Failure> {
            call.progress.enter(Stage::Queued);
            std::future::pending().await
        }
    }

    #[allow(clippy::unnecessary_wraps, reason = "its siblings fail")]
    fn answer() -> Result<Answer, Failure> {
        Ok(Answer { resource_list: Bytes::from_static(b"x"), log: Bytes::new(), notes: Vec::new() })
    }
    fn unknown() -> Result<Answer, Failure> {
        Err(Failure::NotFound { image: "i".into(), detail: None })
    }
    fn missing() -> Result<Answer, Failure> {
        Err(Failure::NotFound { image: "i".into(), detail: Some("its file is gone".into()) })
    }
    fn broken() -> Result<Answer, Failure> {
        Err(Failure::Unavailable { cause: "later".into() })
    }

    fn call(deadline: Option<Duration>) -> Call {
        let image = Reference::parse("example.com/f:v1").unwrap();
        Call::new(
            image.into(),
            Bytes::new(),
            deadline.map(|after| Instant::now() + after),
            TraceContext::begin(),
            Progress::default(),
        )
    }

    #[tokio::test]
    async fn only_not_found_goes_on() {
        let chain = Chain::default().with(Scripted("one", unknown)).with(Scripted("two", answer));
        let asked = call(None);
        assert!(chain.evaluate(&asked).await.is_ok());
        assert_eq!(asked.progress.evaluator(), "two");

        let chain = Chain::default().with(Scripted("one", broken)).with(Scripted("two", answer));
        let asked = call(None);
        assert_eq!(chain.evaluate(&asked).await.unwrap_err().code(), Code::Unavailable);
        assert_eq!(asked.progress.evaluator(), "one");
    }

    #[tokio::test]
    async fn the_end_of_the_chain_tells_what_was_learnt_on_the_way() {
        let chain = Chain::default().with(Scripted("one", missing)).with(Scripted("two", unknown));
        let failure = chain.evaluate(&call(None)).await.unwrap_err();
        assert_eq!(failure.to_string(), r#"function "example.com/f:v1" not found: its file is gone"#);
        let failure = Chain::default().evaluate(&call(None)).await.unwrap_err();
        assert_eq!(failure.to_string(), r#"function "example.com/f:v1" not found"#);
    }

    #[tokio::test(start_paused = true)]
    async fn the_deadline_holds_whatever_an_evaluator_does() {
        let failure =
            Chain::default().with(Stuck).evaluate(&call(Some(Duration::from_secs(2)))).await.unwrap_err();
        assert_eq!(failure.code(), Code::DeadlineExceeded);
        let text = failure.to_string();
        assert!(text.starts_with("function evaluation timed out for example.com/f:v1: "), "{text}");
        assert!(text.contains("after 2.00s while waiting for other functions"), "{text}");
    }
}
