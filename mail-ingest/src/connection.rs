//! One connection: octets between socket and session, and the times a client may take.

mod deadline;
mod stream;

use std::net::IpAddr;
use std::sync::Arc;

use tempmail_runtime::config::Smtp;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

pub use self::deadline::Times;
use self::stream::{Received, Wire};
use crate::delivery::Delivery;
use crate::metrics::Metrics;
use crate::recipient::Recipients;
use crate::smtp::{Action, Session, Settings, reply};

/// What all connections of a pod have in common.
pub struct Server {
    /// For sessions.
    pub settings: Arc<Settings>,
    /// Decides recipients.
    pub recipients: Recipients,
    /// Stores mail.
    pub delivery: Delivery,
    /// For STARTTLS.
    pub tls: Option<TlsAcceptor>,
    /// How long clients may take.
    pub times: Times,
    /// Counters.
    pub metrics: Metrics,
    /// Cancelled when the pod goes down.
    pub drain: CancellationToken,
}

/// How a session over one stream came to its end.
enum End {
    /// The client went away, or the connection broke.
    Gone,
    /// It was told so; its last octets may still be on their way.
    Closed,
    /// It goes on behind a TLS handshake.
    StartTls,
}

impl Times {
    /// As configured.
    pub fn of(config: &Smtp) -> Self {
        Self::new(config.command_seconds, config.data_seconds, config.min_data_rate)
    }
}

impl Server {
    /// Serves one client until it leaves.
    pub async fn serve(&self, stream: TcpStream, peer: IpAddr) {
        let peer = peer.to_canonical();
        let mut wire = Wire::new(stream, &self.times);
        wire.out.extend_from_slice(self.settings.greeting().as_bytes());
        let mut session = Session::new(Arc::clone(&self.settings), peer, false);
        match self.converse(&mut wire, &mut session).await {
            End::Gone => {}
            End::Closed => wire.linger().await,
            End::StartTls => {
                Box::pin(self.serve_tls(wire.into_stream(), peer)).await;
            }
        }
    }

    async fn serve_tls(&self, stream: TcpStream, peer: IpAddr) {
        let Some(acceptor) = &self.tls else { return };
        let handshake = tokio::time::timeout(self.times.command(), acceptor.accept(stream));
        let Ok(Ok(stream)) = handshake.await else {
            self.metrics.tls_failed.increment(1);
            return;
        };
        let mut wire = Wire::new(stream, &self.times);
        let mut session = Session::new(Arc::clone(&self.settings), peer, true);
        if let End::Closed = self.converse(&mut wire, &mut session).await {
            wire.linger().await;
        }
    }

    async fn converse<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        wire: &mut Wire<'_, S>,
        session: &mut Session,
    ) -> End {
        let mut action = Action::Read;
        let mut under_way = None;
        loop {
            if session.is_idle() {
                under_way = None;
            } else if under_way.is_none() {
                under_way = Some(self.delivery.mail_under_way());
            }
            action = match action {
                Action::Read => {
                    if wire.flush().await.is_err() {
                        return End::Gone;
                    }
                    match wire.receive(session, &self.drain).await {
                        Received::Octets(action) => action,
                        Received::Gone => return End::Gone,
                        Received::End(reply) => {
                            reply.write(&mut wire.out);
                            Action::Close
                        }
                    }
                }
                Action::CheckRecipients(recipients) => {
                    let answers = Box::pin(self.recipients.check(recipients, session.declared_size())).await;
                    for refusal in answers.iter().filter_map(|answer| answer.as_ref().err()) {
                        self.metrics.recipient_refused(*refusal);
                    }
                    session.recipients_checked(answers, &mut wire.out);
                    wire.feed(session)
                }
                Action::Deliver(mail) => {
                    let octets = mail.data.len() as u64;
                    // Boxed, like TLS, so that an idle connection keeps no room for it.
                    let verdict = Box::pin(self.delivery.deliver(*mail)).await;
                    self.metrics.delivered(verdict, octets);
                    session.delivered(verdict, &mut wire.out);
                    wire.feed(session)
                }
                Action::StartTls => {
                    return if wire.flush().await.is_ok() { End::StartTls } else { End::Gone };
                }
                Action::Close => {
                    return if wire.flush().await.is_ok() { End::Closed } else { End::Gone };
                }
            };
            if matches!(action, Action::Read) && session.is_idle() && self.drain.is_cancelled() {
                reply::DRAINING.write(&mut wire.out);
                action = Action::Close;
            }
        }
    }
}
