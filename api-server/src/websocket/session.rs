//! A socket from its upgrade to its end.

use hyper::upgrade::OnUpgrade;

use super::authentication::authenticate;
use super::push;
use super::socket::Socket;
use crate::place::Place;
use crate::server::Connection;
use crate::state::AppState;

/// Serves the socket that a connection is upgraded to; `place` is taken until it is
/// authenticated. `shutdown` drains it in its turn, and cuts it when it stops.
pub(super) async fn run(state: AppState, connection: Connection, place: Place, upgrade: OnUpgrade) {
    // Where the client is gone before the answer there is no socket.
    let Ok(upgraded) = upgrade.await else { return };
    let stop = state.shutdown.stop.clone();
    let socket = Box::pin(Socket::new(upgraded, connection)).await;
    stop.run_until_cancelled(serve(state, socket, place)).await;
}

async fn serve(state: AppState, mut socket: Socket, place: Place) {
    let _open = Open::new();
    let mut waiter = state.arrivals.register();
    // Boxed, as everything that an idle socket does not need.
    let authenticated = Box::pin(authenticate(&state, &mut socket, &mut waiter)).await;
    drop(place);
    let end = match authenticated {
        Ok(authenticated) => push::run(&state, &mut socket, &mut waiter, authenticated).await,
        Err(end) => end,
    };
    drop(waiter);
    metrics::counter!("tempmail_websockets_ended_total", "reason" => end.reason()).increment(1);
    Box::pin(socket.close(&end)).await;
}

/// Counts a socket while it is open.
struct Open;

impl Open {
    fn new() -> Self {
        metrics::gauge!("tempmail_websockets").increment(1);
        Self
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        metrics::gauge!("tempmail_websockets").decrement(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size_of_future<F: Future>(_: fn(AppState, Connection, Place, OnUpgrade) -> F) -> usize {
        size_of::<F>()
    }

    #[test]
    fn an_idle_socket_is_small() {
        let size = size_of_future(run);
        assert!(size <= 2048, "{size}");
    }
}
