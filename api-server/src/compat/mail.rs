//! The mail of a tenant, as its drop-in surfaces list, search, read, mark and delete it.

use std::cmp::Reverse;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use tempmail_admission::Turn;
use tempmail_model::message::OwnerKind;
use tempmail_store::{InboxQuery, MessageCount, MessageRow, ScanRange, ScanRequest, StoredMessage};
use uuid::Uuid;

use super::search::{Compared, Search};
use crate::auth::{DropInCaller, SubscriberCredential};
use crate::http::client::{Client, Party};
use crate::http::error::{ApiError, MissingMessage};
use crate::message::{Digest, INITIAL_CHUNK};
use crate::resources::message::delete_all_owned;
use crate::state::AppState;

/// Messages that a request looks at, newest first.
pub(super) const SCAN_MAX: usize = 10_000;
/// Messages that are read from the store at a time.
const SCAN_STEP: usize = 500;
/// Messages of a shared inbox that a search looks at.
const SHARED_MAX: i64 = 1_000;
/// Digests that a search makes, of those that are not kept.
const DIGESTS_MAX: usize = 200;

/// The mail of a tenant.
#[derive(Clone)]
pub(super) struct TenantMail {
    state: AppState,
    tenant: Uuid,
    client: Client,
    credential: SubscriberCredential,
}

/// A page of what a search finds.
#[derive(Debug, Default)]
pub(super) struct FoundPage {
    /// All that are found, and those of them that are not read.
    pub(super) total: usize,
    pub(super) unread: usize,
    pub(super) rows: Vec<MessageRow>,
}

impl TenantMail {
    pub(super) fn of<S>(state: AppState, caller: &DropInCaller<S>) -> Self {
        Self { state, tenant: caller.tenant, client: caller.client, credential: caller.into() }
    }

    /// Judges the token again: it may have ended since the request began. What goes over many messages does so while it
    /// lasts.
    ///
    /// # Errors
    /// 401 or 403; the store failed.
    pub(super) async fn recheck(&self) -> Result<(), ApiError> {
        self.credential.clone().recheck(&self.state.auth, &self.state.store).await
    }

    /// Who reads.
    pub(super) fn client(&self) -> Client {
        self.client
    }

    /// The state of the server.
    pub(super) fn state(&self) -> &AppState {
        &self.state
    }

    /// The message with this id, if the tenant may read it, with the beginning of its raw data. What is not an id is
    /// answered like an unknown one.
    ///
    /// # Errors
    /// 404 or 410; the store failed.
    pub(super) async fn find(&self, id: &str) -> Result<StoredMessage, ApiError> {
        let id = Uuid::try_parse(id).unwrap_or_default();
        let found = self.find_readable(id, INITIAL_CHUNK).await?;
        found.ok_or_else(|| MissingMessage::of(id, self.state.clock.now()).into())
    }

    /// Those of these ids that are messages that the tenant may read.
    pub(super) async fn find_all(&self, ids: &[String]) -> Result<Vec<MessageRow>, ApiError> {
        let mut rows = Vec::new();
        for id in ids.iter().filter_map(|id| Uuid::try_parse(id).ok()) {
            rows.extend(self.find_readable(id, 0).await?.map(|message| message.row));
        }
        Ok(rows)
    }

    async fn find_readable(&self, id: Uuid, raw_len: i32) -> Result<Option<StoredMessage>, ApiError> {
        let (now, reserved) = (self.state.clock.now(), &self.state.reserved);
        Ok(self.state.store.find_readable_message(self.tenant, None, id, reserved, now, raw_len).await?)
    }

    /// The newest message that the tenant owns.
    ///
    /// # Errors
    /// 404; the store failed.
    pub(super) async fn latest(&self) -> Result<MessageRow, ApiError> {
        self.list(0, 1).await?.pop().ok_or(ApiError::NotFound)
    }

    /// Up to `limit` of what the tenant owns after the first `start`, newest first.
    pub(super) async fn list(&self, start: usize, limit: usize) -> Result<Vec<MessageRow>, ApiError> {
        let end = start.saturating_add(limit).min(SCAN_MAX);
        let mut rows = Vec::new();
        let mut scan = Scan::new(self);
        let mut position = 0;
        while position < end
            && let Some(step) = scan.next(end - position).await?
        {
            let from = start.saturating_sub(position).min(step.len());
            position += step.len();
            rows.extend(step.into_iter().skip(from));
        }
        Ok(rows)
    }

    /// How many messages the tenant owns; as far as requests look.
    pub(super) async fn count(&self) -> Result<MessageCount, ApiError> {
        let most = i64::try_from(SCAN_MAX).unwrap_or(i64::MAX);
        let _turn = self.state.gates.long_reads.turn(Party::Id(self.tenant)).await?;
        Ok(self.state.store.count_tenant_messages(self.tenant, most, self.state.clock.now()).await?)
    }

    /// How many messages the tenant owns under each domain; as far as requests look.
    pub(super) async fn count_by_domain(&self) -> Result<HashMap<String, usize>, ApiError> {
        let mut counts = HashMap::new();
        let mut scan = Scan::new(self);
        while let Some(step) = scan.next(SCAN_STEP).await? {
            for row in step {
                if let Some((_, domain)) = row.address.rsplit_once('@') {
                    *counts.entry(domain.to_owned()).or_insert(0) += 1;
                }
            }
        }
        Ok(counts)
    }

    /// What a search finds among what the tenant owns and, where it names the exact address of a shared inbox, in
    /// that. It looks at the newest 10,000 messages, and makes digests of 200.
    pub(super) async fn search(&self, search: &Search) -> Result<Matches<'_>, ApiError> {
        let shared = self.shared_inbox(search).await?;
        let search = Arc::new(search.clone());
        Ok(Matches { scan: Scan::new(self), search, shared: shared.into(), digests: DIGESTS_MAX })
    }

    /// How many messages a search finds, and up to `limit` of them after the first `start`, newest first.
    pub(super) async fn find_page(
        &self,
        search: &Search,
        start: usize,
        limit: usize,
    ) -> Result<FoundPage, ApiError> {
        let mut page = FoundPage::default();
        let mut matches = self.search(search).await?;
        while let Some(rows) = matches.next().await? {
            for row in rows {
                page.unread += usize::from(!row.is_read);
                if page.total >= start && page.rows.len() < limit {
                    page.rows.push(row);
                }
                page.total += 1;
            }
        }
        Ok(page)
    }

    async fn shared_inbox(&self, search: &Search) -> Result<Vec<MessageRow>, ApiError> {
        let Some(address) = search.exact_recipient() else { return Ok(Vec::new()) };
        let query = InboxQuery {
            tenant: self.tenant,
            address: &address,
            reserved: self.state.reserved.reservation_of(address.base_local_part()),
        };
        let newest_first = ScanRequest::new(ScanRange::Before(i64::MAX), SHARED_MAX);
        let scanned = self.state.store.scan_inbox(query, newest_first, self.state.clock.now()).await?;
        // Every other inbox is the tenant's own.
        let shared = scanned.filter(|scan| scan.access.owner_kind == OwnerKind::Shared);
        Ok(shared.map(|scan| scan.rows).unwrap_or_default())
    }

    /// The digest of a message; `None` where it was deleted meanwhile.
    pub(super) async fn digest(&self, row: &MessageRow) -> Result<Option<Arc<Digest>>, ApiError> {
        if let Some(known) = self.state.messages.known_digest(row.id) {
            return Ok(Some(known));
        }
        // A search makes many: those of one tenant take turns, as its waits do.
        let _turn = self.state.gates.mail_reads.turn(self.client.turn_key(Some(self.tenant))).await?;
        self.recheck().await?;
        let digest = match self.find(&row.id.to_string()).await {
            Ok(message) => self.state.messages.digest(message, self.client).await,
            Err(error) => Err(error),
        };
        match digest {
            Ok(digest) => Ok(Some(digest)),
            Err(ApiError::NotFound | ApiError::EmailExpired) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Compares messages: a search has many words, and a message much text.
    async fn compare<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        self.state.messages.parse(self.client.turn_key(Some(self.tenant)), job).await
    }

    /// These messages as a list shows them, without those that were deleted meanwhile.
    pub(super) async fn summaries<T>(
        &self,
        rows: Vec<MessageRow>,
        summary: impl Fn(MessageRow, &Digest) -> T,
    ) -> Result<Vec<T>, ApiError> {
        let mut summaries = Vec::with_capacity(rows.len());
        for row in rows {
            if let Some(digest) = self.digest(&row).await? {
                summaries.push(summary(row, &digest));
            }
        }
        Ok(summaries)
    }

    /// Marks those of these messages that the tenant owns. What is read in a shared inbox is nobody's to say.
    pub(super) async fn mark(&self, rows: &[MessageRow], is_read: bool) -> Result<(), ApiError> {
        let is_changed = |row: &&MessageRow| row.tenant == Some(self.tenant) && row.is_read != is_read;
        let marked: Vec<_> = rows.iter().filter(is_changed).cloned().collect();
        Ok(self.state.store.mark_messages(&marked, is_read).await?)
    }

    /// Marks what a search finds.
    pub(super) async fn mark_found(&self, search: &Search, is_read: bool) -> Result<(), ApiError> {
        let mut matches = self.search(search).await?;
        while let Some(rows) = matches.next().await? {
            self.mark(&rows, is_read).await?;
        }
        Ok(())
    }

    /// Deletes everything that the tenant owns.
    ///
    /// # Errors
    /// 503 where it takes too long: some are left then.
    pub(super) async fn clear(&self) -> Result<(), ApiError> {
        delete_all_owned(&self.state, self.tenant).await
    }

    /// Deletes these messages for every reader; those that are deleted already are passed over.
    ///
    /// # Errors
    /// 503 where it takes too long: some are left then.
    pub(super) async fn delete(&self, rows: &[MessageRow]) -> Result<(), ApiError> {
        let deletion = self.state.begin_deletion();
        for row in rows {
            deletion.delete_message(row).await?;
        }
        Ok(())
    }

    /// Deletes what a search finds, as [`Self::delete`].
    ///
    /// # Errors
    /// As [`Self::delete`].
    pub(super) async fn delete_found(&self, search: &Search) -> Result<(), ApiError> {
        let deletion = self.state.begin_deletion();
        let mut matches = self.search(search).await?;
        while let Some(rows) = matches.next().await? {
            for row in &rows {
                deletion.delete_message(row).await?;
            }
        }
        Ok(())
    }

    /// Deletes the message with this id for every reader.
    ///
    /// # Errors
    /// 404 or 410; the store failed.
    pub(super) async fn delete_one(&self, id: &str) -> Result<(), ApiError> {
        let message = self.find(id).await?;
        // Another request may have deleted it first.
        if self.state.begin_deletion().delete_message(&message.row).await? {
            Ok(())
        } else {
            Err(ApiError::NotFound)
        }
    }
}

/// A walk through what a search finds, newest first.
pub(super) struct Matches<'a> {
    scan: Scan<'a>,
    search: Arc<Search>,
    /// Of the shared inbox that the search names, newest first.
    shared: VecDeque<MessageRow>,
    /// Digests that may still be made.
    digests: usize,
}

impl Matches<'_> {
    /// The next messages that are found, perhaps none; `None` at the end. They are read and compared within a turn.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<MessageRow>>, ApiError> {
        if self.scan.left == 0 && self.shared.is_empty() {
            return Ok(None);
        }
        let turn = self.scan.turn().await?;
        let rows = self.next_rows().await?;
        if rows.is_empty() {
            return Ok(None);
        }
        let (state, search) = (self.scan.mail.state.clone(), Arc::clone(&self.search));
        let compared = self.scan.mail.compare(move || {
            let _turn = turn;
            let is_found = |row: &MessageRow| {
                let message = Compared::of(row);
                search.matches(&message).or_else(|| {
                    let digest = state.messages.known_digest(row.id)?;
                    search.matches(&message.with(&digest))
                })
            };
            rows.into_iter().map(|row| (is_found(&row), row)).collect::<Vec<_>>()
        });
        let mut found = Vec::new();
        for (is_found, row) in compared.await? {
            match is_found {
                Some(true) => found.push(row),
                Some(false) => {}
                None => found.extend(self.find_by_digest(row).await?),
            }
        }
        Ok(Some(found))
    }

    /// The next messages that the tenant owns, among those of the shared inbox.
    async fn next_rows(&mut self) -> Result<Vec<MessageRow>, ApiError> {
        let mut rows = self.scan.read(SCAN_STEP).await?.unwrap_or_default();
        let oldest = rows.last().map_or(i64::MIN, |row| row.seq);
        let has_shared = self.shared.front().is_some_and(|row| row.seq > oldest);
        while let Some(row) = self.shared.pop_front_if(|row| row.seq > oldest) {
            rows.push(row);
        }
        if has_shared {
            rows.sort_unstable_by_key(|row| Reverse(row.seq));
        }
        Ok(rows)
    }

    /// The message, if it is found by a digest that is made for it.
    async fn find_by_digest(&mut self, row: MessageRow) -> Result<Option<MessageRow>, ApiError> {
        let Some(left) = self.digests.checked_sub(1) else { return Ok(None) };
        self.digests = left;
        let Some(digest) = self.scan.mail.digest(&row).await? else { return Ok(None) };
        let search = Arc::clone(&self.search);
        self.scan
            .mail
            .compare(move || {
                let is_found = search.matches(&Compared::of(&row).with(&digest)) == Some(true);
                is_found.then_some(row)
            })
            .await
    }
}

/// A walk through what a tenant owns, newest first.
struct Scan<'a> {
    mail: &'a TenantMail,
    before: i64,
    /// Messages that may still be looked at.
    left: usize,
}

impl<'a> Scan<'a> {
    fn new(mail: &'a TenantMail) -> Self {
        Self { mail, before: i64::MAX, left: SCAN_MAX }
    }

    /// A turn of the tenant at what reads much of the store.
    async fn turn(&self) -> Result<Turn<Party>, ApiError> {
        self.mail.state.gates.long_reads.turn(Party::Id(self.mail.tenant)).await
    }

    /// The next messages, up to `most`, within a turn; `None` at the end.
    async fn next(&mut self, most: usize) -> Result<Option<Vec<MessageRow>>, ApiError> {
        if most.min(self.left) == 0 {
            return Ok(None);
        }
        let _turn = self.turn().await?;
        self.read(most).await
    }

    /// The next messages, up to `most`, for a caller whose turn it is; `None` at the end.
    async fn read(&mut self, most: usize) -> Result<Option<Vec<MessageRow>>, ApiError> {
        let limit = most.min(self.left).min(SCAN_STEP);
        if limit == 0 {
            return Ok(None);
        }
        let TenantMail { state, tenant, .. } = self.mail;
        if self.before != i64::MAX {
            self.mail.recheck().await?;
        }
        let rows_max = i64::try_from(limit).unwrap_or(i64::MAX);
        let request = ScanRequest::new(ScanRange::Before(self.before), rows_max);
        let scanned = state.store.scan_tenant(*tenant, None, request, state.clock.now()).await?;
        let rows = scanned.map(|scan| scan.rows).unwrap_or_default();
        self.left = if rows.len() < limit { 0 } else { self.left - rows.len() };
        let Some(last) = rows.last() else { return Ok(None) };
        self.before = last.seq;
        Ok(Some(rows))
    }
}
