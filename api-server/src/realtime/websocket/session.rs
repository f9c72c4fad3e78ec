//! A socket from its upgrade to its close.

use hyper::upgrade::OnUpgrade;
use tempmail_admission::{ClientNetwork, Share};

use super::authentication::authenticate;
use super::push;
use super::socket::Socket;
use crate::http::connection::Connection;
use crate::state::AppState;

/// That of a client among the sockets that are not authenticated.
pub(super) type SocketShare = Share<ClientNetwork>;

/// Serves the socket that a connection is upgraded to; `share` is held until the client is
/// authenticated. `shutdown` first drains the socket, and cuts it when it stops.
pub(super) async fn run(state: AppState, connection: Connection, share: SocketShare, upgrade: OnUpgrade) {
    // The upgrade fails where the client disconnected before the answer.
    let Ok(upgraded) = upgrade.await else { return };
    let stop = state.shutdown.stop.clone();
    let socket = Box::pin(Socket::new(upgraded, connection)).await;
    stop.run_until_cancelled(serve(state, socket, share)).await;
}

async fn serve(state: AppState, mut socket: Socket, share: SocketShare) {
    let _open = OpenSocketGauge::increment();
    let mut subscriber = state.arrivals.register();
    // Boxed, as everything that an idle socket does not need.
    let authenticated = Box::pin(authenticate(&state, &mut socket, &mut subscriber)).await;
    drop(share);
    let reason = match authenticated {
        Ok(authenticated) => push::run(&state, &mut socket, &mut subscriber, authenticated).await,
        Err(reason) => reason,
    };
    drop(subscriber);
    metrics::counter!("tempmail_websockets_ended_total", "reason" => reason.label()).increment(1);
    Box::pin(socket.close(&reason)).await;
}

/// Counts a socket while it is open.
struct OpenSocketGauge;

impl OpenSocketGauge {
    fn increment() -> Self {
        metrics::gauge!("tempmail_websockets").increment(1);
        Self
    }
}

impl Drop for OpenSocketGauge {
    fn drop(&mut self) {
        metrics::gauge!("tempmail_websockets").decrement(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size_of_future<F: Future>(_: fn(AppState, Connection, SocketShare, OnUpgrade) -> F) -> usize {
        size_of::<F>()
    }

    #[test]
    fn bounds_the_size_of_an_idle_socket() {
        let size = size_of_future(run);
        assert!(size <= 2048, "{size}");
    }
}
