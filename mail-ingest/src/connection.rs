//! Connections: each serves one client, carries bytes between socket and session, performs the actions that the session
//! requests, and keeps the deadlines of the client.

mod client_stream;
mod deadline;

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tempmail_runtime::traces::{Stage, StageTimer};
use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader,
};
use tokio::net::TcpStream;
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use self::client_stream::{ClientStream, ReadOutcome};
use self::deadline::end_after;
use crate::delivery::Delivery;
use crate::mail_rates::MailRates;
use crate::metrics::Metrics;
use crate::recipient::{RecipientChecker, RejectionDelay};
use crate::smtp::{
    AcceptedRecipient, Action, Peer, PendingRecipient, ReceivedMail, RecipientRejection, Reply, Session,
    SessionSettings, reply,
};

pub(crate) use deadline::Timeouts;

/// What all connections of a process share.
pub(crate) struct SmtpServer {
    /// The settings of sessions.
    pub(crate) settings: Arc<SessionSettings>,
    /// Accepts or rejects recipients.
    pub(crate) recipients: RecipientChecker,
    /// Slows down clients that guess recipients.
    pub(crate) rejection_delay: RejectionDelay,
    /// Limits what a client sends.
    pub(crate) rates: MailRates,
    /// Stores mail.
    pub(crate) delivery: Delivery,
    /// For STARTTLS.
    pub(crate) tls: Option<TlsAcceptor>,
    /// The time that clients may take.
    pub(crate) timeouts: Timeouts,
    /// Counters.
    pub(crate) metrics: Metrics,
    /// Cancelled when the process drains.
    pub(crate) drain: CancellationToken,
}

/// Who is served, and since when: the same before and after STARTTLS.
struct Served<'a> {
    peer: Peer,
    activity: &'a SessionActivity,
    started: Instant,
}

/// How a session ended.
enum SessionEnd {
    /// The client disconnected, or the connection broke.
    Disconnected,
    /// The server closed it; the last reply may still be on its way.
    Closed,
    /// A new session follows after a TLS handshake.
    StartTls,
}

impl SmtpServer {
    /// Serves one client until the connection ends, or another one gets its place.
    pub(crate) async fn serve(&self, stream: TcpStream, peer: Peer, activity: &SessionActivity) {
        let served = Served { peer, activity, started: Instant::now() };
        let mut stream = ClientStream::new(stream, &self.timeouts, activity.ended().clone());
        stream.out.extend_from_slice(self.settings.greeting().as_bytes());
        match self.run_session(&mut stream, &served, false).await {
            SessionEnd::Disconnected => {}
            SessionEnd::Closed => stream.linger().await,
            SessionEnd::StartTls => {
                Box::pin(self.serve_tls(stream.into_stream(), &served)).await;
            }
        }
    }

    async fn serve_tls(&self, stream: TcpStream, served: &Served<'_>) {
        let Some(acceptor) = &self.tls else { return };
        let handshake = tokio::time::timeout(self.timeouts.command(), acceptor.accept(stream));
        let handshake = tokio::select! {
            handshake = handshake => handshake,
            () = served.activity.ended().cancelled() => return,
        };
        let Ok(Ok(stream)) = handshake else {
            self.metrics.tls_failures.increment(1);
            return;
        };
        let mut stream = ClientStream::new(stream, &self.timeouts, served.activity.ended().clone());
        if let SessionEnd::Closed = self.run_session(&mut stream, served, true).await {
            stream.linger().await;
        }
    }

    async fn run_session<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        stream: &mut ClientStream<'_, S>,
        served: &Served<'_>,
        tls: bool,
    ) -> SessionEnd {
        let session = &mut Session::new(Arc::clone(&self.settings), served.peer, tls);
        let mut action = Action::Read;
        let mut transaction = None;
        let mut timer = StageTimer::start(Stage::SmtpTransaction);
        let session_end = end_after(served.started, self.timeouts.session());
        stream.end_at(session_end, reply::SESSION_TOO_LONG);
        loop {
            let open = session.open_transaction();
            if open != transaction {
                transaction = open;
                timer = StageTimer::start(Stage::SmtpTransaction);
                if open.is_some() {
                    // It may pass the end of its session, but not by more than its own time.
                    let time = self.timeouts.transaction();
                    let end = end_after(Instant::now(), time).min(end_after(session_end, time));
                    stream.end_at(end, reply::TRANSACTION_TOO_LONG);
                } else {
                    stream.end_at(session_end, reply::SESSION_TOO_LONG);
                }
            }
            action = match action {
                Action::Read => {
                    if let Err(error) = stream.flush().await {
                        return self.disconnected(&error);
                    }
                    if stream.ends_turn() {
                        tokio::task::yield_now().await;
                    }
                    match stream.receive(session, &self.drain).await {
                        ReadOutcome::Input(action) => {
                            if session.awaited_input().data.is_some() {
                                served.activity.record_progress();
                            }
                            action
                        }
                        ReadOutcome::Disconnected => return SessionEnd::Disconnected,
                        ReadOutcome::Close(reply) => self.close(reply, stream),
                    }
                }
                Action::Flush => {
                    if let Err(error) = stream.flush().await {
                        return self.disconnected(&error);
                    }
                    stream.feed_unconsumed(session)
                }
                // Boxed, like TLS, so that an idle connection reserves no memory for them.
                Action::CheckRecipients(recipients) => {
                    Box::pin(self.check_recipients(recipients, served, stream, session)).await
                }
                Action::Deliver(mail) => {
                    served.activity.begin_delivery();
                    let action = Box::pin(self.deliver(*mail, timer, stream, session)).await;
                    served.activity.record_progress();
                    // Of a further transaction that the client has pipelined.
                    timer = StageTimer::start(Stage::SmtpTransaction);
                    action
                }
                Action::StartTls => {
                    return match stream.flush().await {
                        Ok(()) => SessionEnd::StartTls,
                        Err(error) => self.disconnected(&error),
                    };
                }
                Action::Close => {
                    if session.has_too_many_errors() {
                        self.metrics.limited(reply::TOO_MANY_ERRORS);
                    }
                    return match stream.flush().await {
                        Ok(()) => SessionEnd::Closed,
                        Err(error) => self.disconnected(&error),
                    };
                }
            };
            for refusal in session.take_refusals() {
                self.metrics.refused(refusal);
            }
            if matches!(action, Action::Read) && session.is_idle() {
                if self.drain.is_cancelled() {
                    action = self.close(reply::DRAINING, stream);
                } else if Instant::now() >= session_end {
                    action = self.close(reply::SESSION_TOO_LONG, stream);
                }
            }
        }
    }

    /// Ends the session with this reply.
    fn close<S>(&self, reply: Reply, stream: &mut ClientStream<'_, S>) -> Action {
        self.metrics.limited(reply);
        reply.write(&mut stream.out);
        Action::Close
    }

    /// The end of a session whose replies could not be sent.
    fn disconnected(&self, error: &io::Error) -> SessionEnd {
        if error.kind() == io::ErrorKind::TimedOut {
            self.metrics.unread_replies();
        }
        SessionEnd::Disconnected
    }

    async fn check_recipients<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        recipients: Vec<PendingRecipient>,
        served: &Served<'_>,
        stream: &mut ClientStream<'_, S>,
        session: &mut Session,
    ) -> Action {
        let size = session.declared_size();
        let mut results = self.recipients.check(recipients, size).await;
        for result in &mut results {
            if let Ok(recipient) = result
                && let Err(rejection) = self.rates.check(served.peer, recipient, size)
            {
                *result = Err(rejection);
            }
        }
        for rejection in results.iter().filter_map(|result| result.as_ref().err()) {
            self.metrics.recipient_rejected(*rejection);
        }
        if let Err(reply) = self.delay_rejections(&results, served).await {
            return self.close(reply, stream);
        }
        if results.iter().any(Result::is_ok) {
            served.activity.record_progress();
        }
        session.recipients_checked(results, &mut stream.out);
        stream.feed_unconsumed(session)
    }

    /// Waits until these recipients may be rejected to a client that guesses.
    ///
    /// # Errors
    /// The reply that ends the session.
    async fn delay_rejections(
        &self,
        results: &[Result<AcceptedRecipient, RecipientRejection>],
        served: &Served<'_>,
    ) -> Result<(), Reply> {
        let denied = |result: &&Result<_, RecipientRejection>| {
            result.as_ref().is_err_and(|rejection| rejection.denies_address())
        };
        let denied = u32::try_from(results.iter().filter(denied).count()).unwrap_or(u32::MAX);
        let (Some(client), true) = (served.peer.client, denied > 0) else { return Ok(()) };
        let delay = self.rejection_delay.reserve(client, denied).map_err(|_| reply::TOO_MANY_UNKNOWN)?;
        if delay.is_zero() {
            return Ok(());
        }
        self.metrics.delayed_rejections.increment(denied.into());
        tokio::select! {
            () = tokio::time::sleep(delay) => Ok(()),
            () = served.activity.ended().cancelled() => Err(reply::SESSION_REPLACED),
            () = self.drain.cancelled() => Err(reply::DRAINING),
        }
    }

    async fn deliver<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        mail: ReceivedMail,
        timer: StageTimer,
        stream: &mut ClientStream<'_, S>,
        session: &mut Session,
    ) -> Action {
        let bytes = mail.data.len() as u64;
        let outcome = match self.rates.count(mail.peer, &mail.recipients, bytes) {
            Ok(()) => self.delivery.deliver(mail, timer).await,
            Err(outcome) => outcome,
        };
        self.metrics.delivered(outcome, bytes);
        session.delivered(outcome, &mut stream.out);
        stream.feed_unconsumed(session)
    }
}

/// What a session reports to the limits of connections, and what ends it for another session. A session makes
/// progress where it begins, a recipient is accepted, message data arrives, or mail is stored; other commands, such
/// as NOOP, are none.
#[derive(Debug)]
pub(crate) struct SessionActivity {
    /// `None` while the client waits for the outcome of a delivery.
    progress: Mutex<Option<Instant>>,
    ended: CancellationToken,
}

impl SessionActivity {
    /// Records progress, which also ends a delivery.
    pub(crate) fn record_progress(&self) {
        self.set(Some(Instant::now()));
    }

    /// The client waits for the outcome of a delivery from now on, and the session is not ended for others.
    pub(crate) fn begin_delivery(&self) {
        self.set(None);
    }

    /// The time since the last progress; `None` during a delivery.
    pub(crate) fn idle_for(&self) -> Option<Duration> {
        let progress = *self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        progress.map(|progress| progress.elapsed())
    }

    /// Ends the session for another one.
    pub(crate) fn end(&self) {
        self.ended.cancel();
    }

    /// Cancelled when the session is ended for another one.
    pub(crate) fn ended(&self) -> &CancellationToken {
        &self.ended
    }

    fn set(&self, progress: Option<Instant>) {
        *self.progress.lock().unwrap_or_else(PoisonError::into_inner) = progress;
    }
}

impl Default for SessionActivity {
    fn default() -> Self {
        Self { progress: Mutex::new(Some(Instant::now())), ended: CancellationToken::new() }
    }
}

/// Octets of its command that are read.
const LINE_MAX: u64 = 512;

impl SmtpServer {
    /// Serves a load balancer that checks whether the server is alive, until the connection ends: it gets the
    /// greeting, and may only QUIT.
    pub(crate) async fn serve_health_check(&self, mut stream: TcpStream) {
        let command = tokio::time::timeout(self.timeouts.command(), self.greet(&mut stream)).await;
        let reply = match command {
            Ok(Ok(command)) if command.trim_ascii_end().eq_ignore_ascii_case(b"QUIT") => reply::BYE,
            Ok(Ok(command)) if command.is_empty() => return,
            Ok(Ok(_)) => reply::ONLY_QUIT,
            Ok(Err(_)) => return,
            Err(_) => reply::TIMEOUT,
        };
        let mut client = ClientStream::new(stream, &self.timeouts, CancellationToken::new());
        reply.write(&mut client.out);
        if client.flush().await.is_ok() {
            client.linger().await;
        }
    }

    /// Sends the greeting and reads a line; it is empty if the other side closes.
    async fn greet(&self, stream: &mut TcpStream) -> io::Result<Vec<u8>> {
        stream.write_all(self.settings.greeting().as_bytes()).await?;
        let mut line = Vec::new();
        BufReader::new(stream.take(LINE_MAX)).read_until(b'\n', &mut line).await?;
        Ok(line)
    }
}
