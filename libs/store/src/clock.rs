//! The clock of Postgres, compared with that of this machine.

use jiff::{SignedDuration, Timestamp};

use crate::error::StoreError;
use crate::pool::Store;
use crate::pooled_connection::answered;

impl Store {
    /// How far the clock of Postgres is ahead of `local`, the clock of this machine, and the duration of the round
    /// trip. The offset is exact to half of the round trip.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn clock_offset(
        &self,
        local: impl Fn() -> Timestamp + Send,
    ) -> Result<(SignedDuration, SignedDuration), StoreError> {
        let mut connection = self.acquire().await?;
        let sent_at = local();
        let asked = sqlx::query_scalar("/* clock_offset */ SELECT clock_timestamp()");
        let answer = answered(connection.deadline(), asked.fetch_one(&mut *connection)).await;
        let server_time: jiff_sqlx::Timestamp = answer.inspect_err(|_| connection.close_on_drop())?;
        let round_trip = local().duration_since(sent_at);
        let middle = sent_at + round_trip / 2;
        Ok((server_time.to_jiff().duration_since(middle), round_trip))
    }
}
