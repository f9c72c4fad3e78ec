//! Nothing fails: whoever listens, in any way and at any process, meets every mail once.

use super::senders::{Flow, Senders};
use super::stage::Stage;

#[tokio::test(flavor = "multi_thread")]
async fn every_way_of_listening_meets_each_of_5_000_mails_once() {
    let stage = Stage::set().await;
    let flow = Flow { connections: 16, pace: None, each: Some(5_008 / 16), ..stage.flow() };
    let accepted = Senders::start(&flow).done().await;
    assert!(accepted.len() >= 5_000);
    stage.all_is_met(&accepted).await;
}
