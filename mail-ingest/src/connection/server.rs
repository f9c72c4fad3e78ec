//! Serves one client: performs the actions that its session requests.

use std::net::IpAddr;
use std::sync::Arc;

use tempmail_runtime::traces::{Stage, StageTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use super::client_stream::{ClientStream, ReadOutcome};
use super::timeouts::Timeouts;
use crate::delivery::Delivery;
use crate::metrics::Metrics;
use crate::recipient::RecipientChecker;
use crate::smtp::{Action, PendingRecipient, ReceivedMail, Session, SessionSettings, reply};

/// What all connections of a process share.
pub(crate) struct Server {
    /// The settings of sessions.
    pub(crate) settings: Arc<SessionSettings>,
    /// Accepts or rejects recipients.
    pub(crate) recipients: RecipientChecker,
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

/// How a session ended.
enum SessionEnd {
    /// The client disconnected, or the connection broke.
    Disconnected,
    /// The server closed it; the last reply may still be on its way.
    Closed,
    /// A new session follows after a TLS handshake.
    StartTls,
}

impl Server {
    /// Serves one client until the connection ends.
    pub(crate) async fn serve(&self, stream: TcpStream, peer: IpAddr) {
        let peer = peer.to_canonical();
        let mut client = ClientStream::new(stream, &self.timeouts);
        client.out.extend_from_slice(self.settings.greeting().as_bytes());
        let mut session = Session::new(Arc::clone(&self.settings), peer, false);
        match self.run_session(&mut client, &mut session).await {
            SessionEnd::Disconnected => {}
            SessionEnd::Closed => client.linger().await,
            SessionEnd::StartTls => {
                Box::pin(self.serve_tls(client.into_stream(), peer)).await;
            }
        }
    }

    async fn serve_tls(&self, stream: TcpStream, peer: IpAddr) {
        let Some(acceptor) = &self.tls else { return };
        let handshake = tokio::time::timeout(self.timeouts.command(), acceptor.accept(stream));
        let Ok(Ok(stream)) = handshake.await else {
            self.metrics.tls_failures.increment(1);
            return;
        };
        let mut client = ClientStream::new(stream, &self.timeouts);
        let mut session = Session::new(Arc::clone(&self.settings), peer, true);
        if let SessionEnd::Closed = self.run_session(&mut client, &mut session).await {
            client.linger().await;
        }
    }

    async fn run_session<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        client: &mut ClientStream<'_, S>,
        session: &mut Session,
    ) -> SessionEnd {
        let mut action = Action::Read;
        let mut transaction = None;
        let mut timer = StageTimer::start(Stage::SmtpTransaction);
        loop {
            if session.is_idle() {
                transaction = None;
            } else if transaction.is_none() {
                transaction = Some(self.delivery.begin_transaction());
                timer = StageTimer::start(Stage::SmtpTransaction);
            }
            action = match action {
                Action::Read => {
                    if client.flush().await.is_err() {
                        return SessionEnd::Disconnected;
                    }
                    match client.receive(session, &self.drain).await {
                        ReadOutcome::Input(action) => action,
                        ReadOutcome::Disconnected => return SessionEnd::Disconnected,
                        ReadOutcome::Close(reply) => {
                            reply.write(&mut client.out);
                            Action::Close
                        }
                    }
                }
                // Boxed, like TLS, so that an idle connection reserves no memory for them.
                Action::CheckRecipients(recipients) => {
                    Box::pin(self.check_recipients(recipients, client, session)).await
                }
                Action::Deliver(mail) => {
                    let action = Box::pin(self.deliver(*mail, timer, client, session)).await;
                    // A client that pipelines has begun the next transaction.
                    timer = StageTimer::start(Stage::SmtpTransaction);
                    action
                }
                Action::StartTls => {
                    return if client.flush().await.is_ok() {
                        SessionEnd::StartTls
                    } else {
                        SessionEnd::Disconnected
                    };
                }
                Action::Close => {
                    return if client.flush().await.is_ok() {
                        SessionEnd::Closed
                    } else {
                        SessionEnd::Disconnected
                    };
                }
            };
            for refusal in session.take_refusals() {
                self.metrics.refused(refusal);
            }
            if matches!(action, Action::Read) && session.is_idle() && self.drain.is_cancelled() {
                reply::DRAINING.write(&mut client.out);
                action = Action::Close;
            }
        }
    }

    async fn check_recipients<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        recipients: Vec<PendingRecipient>,
        client: &mut ClientStream<'_, S>,
        session: &mut Session,
    ) -> Action {
        let results = self.recipients.check(recipients, session.declared_size()).await;
        for rejection in results.iter().filter_map(|result| result.as_ref().err()) {
            self.metrics.recipient_rejected(*rejection);
        }
        session.recipients_checked(results, &mut client.out);
        client.feed_unconsumed(session)
    }

    async fn deliver<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        mail: ReceivedMail,
        timer: StageTimer,
        client: &mut ClientStream<'_, S>,
        session: &mut Session,
    ) -> Action {
        let bytes = mail.data.len() as u64;
        let outcome = self.delivery.deliver(mail, timer).await;
        self.metrics.delivered(outcome, bytes);
        session.delivered(outcome, &mut client.out);
        client.feed_unconsumed(session)
    }
}
