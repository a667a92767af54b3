//! Requests that wait for whoever has the run open: of a run that goes on, it is opened again and again.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::Duration;

use super::server::Answer;

/// How soon a worker that waits for a request notices that it should stop.
const NOTICED: Duration = Duration::from_millis(100);

/// A request: the path after the token, and the query.
pub struct Question {
    pub path: String,
    pub query: String,
    answer: mpsc::Sender<Option<Answer>>,
}

impl Question {
    pub fn reply(&self, answer: Option<Answer>) {
        // Its client may be gone.
        let _ = self.answer.send(answer);
    }
}

/// Requests in their order.
#[derive(Default)]
pub struct Questions {
    waiting: Mutex<VecDeque<Question>>,
    added: Condvar,
}

impl Questions {
    /// Asks, and waits for the answer.
    pub fn ask(&self, path: &str, query: &str) -> Option<Answer> {
        let (answer, answered) = mpsc::channel();
        self.lock().push_back(Question { path: path.to_owned(), query: query.to_owned(), answer });
        self.added.notify_one();
        answered.recv().ok().flatten()
    }

    /// The next request; `None` when the worker should stop.
    pub fn next(&self, stop: &AtomicBool) -> Option<Question> {
        let mut waiting = self.lock();
        while !stop.load(Ordering::Relaxed) {
            if let Some(question) = waiting.pop_front() {
                return Some(question);
            }
            let waited = self.added.wait_timeout(waiting, NOTICED);
            waiting = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        None
    }

    /// Leaves a request to those who come later.
    pub fn put_back(&self, question: Question) {
        self.lock().push_front(question);
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Question>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_that_is_put_back_is_answered_by_the_next_worker() {
        let (questions, stop) = (Questions::default(), AtomicBool::new(false));
        let answer = |body: &str| Answer { media: "text/plain", body: body.into(), nonce: None };
        std::thread::scope(|scope| {
            let asked = scope.spawn(|| questions.ask("page", "a=1"));
            let question = questions.next(&stop).unwrap();
            questions.put_back(question);
            stop.store(true, Ordering::Relaxed);
            assert!(questions.next(&stop).is_none());
            let question = questions.next(&AtomicBool::new(false)).unwrap();
            assert_eq!((question.path.as_str(), question.query.as_str()), ("page", "a=1"));
            question.reply(Some(answer("yes")));
            assert_eq!(asked.join().unwrap().unwrap().body, b"yes");
        });
    }
}
