//! Attacks on a running platform, and a well-behaved client of another tenant beside them: tests show that it is not
//! disturbed, and `tempmail-bench attack` measures it.

mod connections;
mod dns;
mod http;
mod large_mail;
mod open_files;
mod smtp;
mod store;
mod victim;

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io;
use std::mem;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use reqwest::Method;
use sqlx::PgPool;
use tempmail_model::clock::SystemClock;
use tempmail_model::token::TokenKind;
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_util::sync::{CancellationToken, DropGuard};

use self::connections::IdleConnections;
use self::dns::SilentNameServers;
pub use self::dns::silent_dns;
use self::http::{DeepPages, PasswordResets, SignIns, SlowReaders, UnknownCredentials};
use self::open_files::runtime_with_own_files;
use self::smtp::{Harvest, ParkedBdat, SlowData};
use self::store::{StoreFiller, TagDeletions};
pub use self::victim::{Victim, VictimReport};
use crate::http::{Request, client};
use crate::mailbox::{self, Mailbox, PASSWORD};
use crate::rows::{SYSTEM_DOMAIN, Tenant, insert_tenant, insert_token, set_mailbox_quota};

/// Quota of the mailboxes of the victim, bytes: more than an attack sends to them.
const VICTIM_QUOTA: i64 = 8 << 30;
/// Time between two readings of an attacker's processor time.
const READING: Duration = Duration::from_millis(10);
/// Pause of an attacker after a refusal: to be refused is not what costs others anything.
const RETRY: Duration = Duration::from_millis(200);

/// Where the attacker is, as the limits see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// At another address than the victim, with a tenant and recipients of its own.
    Apart,
    /// At the client address of the victim.
    SameClient,
    /// At another address; it sends to another mailbox of the victim's tenant.
    SameTenant,
    /// At another address; it sends to the victim's addresses.
    SameAddress,
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Apart => "apart",
            Self::SameClient => "same client",
            Self::SameTenant => "same tenant",
            Self::SameAddress => "same address",
        })
    }
}

/// An attack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttackKind {
    /// `BDAT` of 25 MB without `LAST`, kept by `NOOP`.
    ParkedBdat,
    /// Message data of an octet a second.
    SlowData,
    /// Clients that read an octet a second of a message of 25 MB.
    SlowReaders,
    /// Requests with well-formed credentials that nobody has.
    UnknownCredentials,
    /// Wrong passwords.
    SignIns,
    /// Password resets of a Pro tenant.
    PasswordResets,
    /// The last pages of a mailbox with 20,000 messages and of its tenant.
    DeepPages,
    /// Mails of 25 MB to 100 recipients.
    StoreFiller,
    /// Thousands of connections to each port that say nothing.
    IdleConnections,
    /// Checks of domains whose name servers never answer.
    SilentNameServers,
    /// `RCPT` to unknown recipients.
    Harvest,
    /// Deletions by tag in a nearly full mailbox.
    TagDeletions,
}

impl AttackKind {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::ParkedBdat,
        Self::SlowData,
        Self::SlowReaders,
        Self::UnknownCredentials,
        Self::SignIns,
        Self::PasswordResets,
        Self::DeepPages,
        Self::StoreFiller,
        Self::IdleConnections,
        Self::SilentNameServers,
        Self::Harvest,
        Self::TagDeletions,
    ];

    /// Its name, which also selects it in the benchmark.
    pub fn name(self) -> &'static str {
        match self {
            Self::ParkedBdat => "parked-bdat",
            Self::SlowData => "slow-data",
            Self::SlowReaders => "slow-readers",
            Self::UnknownCredentials => "unknown-credentials",
            Self::SignIns => "sign-ins",
            Self::PasswordResets => "password-resets",
            Self::DeepPages => "deep-pages",
            Self::StoreFiller => "store-filler",
            Self::IdleConnections => "idle-connections",
            Self::SilentNameServers => "silent-name-servers",
            Self::Harvest => "harvest",
            Self::TagDeletions => "tag-deletions",
        }
    }

    /// Where the attacker may be; only those that send mail choose a recipient.
    pub fn placements(self) -> &'static [Placement] {
        match self {
            Self::ParkedBdat | Self::SlowData | Self::StoreFiller => {
                &[Placement::Apart, Placement::SameClient, Placement::SameTenant, Placement::SameAddress]
            }
            _ => &[Placement::Apart, Placement::SameClient],
        }
    }

    /// Creates what the attack needs: mailboxes, mail, domains. What is returned attacks at once, each on a thread.
    ///
    /// # Panics
    /// The platform refuses it.
    pub async fn prepare(self, target: &AttackTarget) -> Vec<Box<dyn Attack>> {
        let attack: Box<dyn Attack> = match self {
            Self::ParkedBdat => Box::new(ParkedBdat::new()),
            Self::SlowData => Box::new(SlowData),
            Self::SlowReaders => Box::new(SlowReaders::prepare(target).await),
            Self::UnknownCredentials => Box::new(UnknownCredentials),
            Self::SignIns => Box::new(SignIns::prepare(target).await),
            Self::PasswordResets => Box::new(PasswordResets::prepare(target).await),
            Self::DeepPages => Box::new(DeepPages::prepare(target).await),
            Self::StoreFiller => Box::new(StoreFiller::new(target)),
            Self::IdleConnections => return IdleConnections::to_each_port(target),
            Self::SilentNameServers => Box::new(SilentNameServers::prepare(target).await),
            Self::Harvest => Box::new(Harvest::prepare(target).await),
            Self::TagDeletions => Box::new(TagDeletions::prepare(target).await),
        };
        vec![attack]
    }
}

/// An attack that is prepared.
#[async_trait::async_trait]
pub trait Attack: Send + Sync {
    /// Attacks until it is dropped, and records what it is answered.
    async fn run(&self, target: &AttackTarget, log: &AttackLog);
}

/// Answers to an attack: replies, statuses and codes, or `closed`.
#[derive(Debug, Default)]
pub struct AttackLog(Mutex<BTreeMap<String, u64>>);

impl AttackLog {
    /// Counts an answer.
    fn record(&self, answer: impl Into<String>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(answer.into()).or_default() += 1;
    }
}

/// What an attack did.
#[derive(Debug)]
pub struct AttackReport {
    /// How often it was answered what.
    pub answers: BTreeMap<String, u64>,
    /// Readings of the processor time of each of its threads.
    pub cpu: Vec<Vec<CpuReading>>,
}

/// Processor time of a thread up to a moment.
#[derive(Debug, Clone, Copy, Default)]
pub struct CpuReading {
    /// The moment, since the start.
    pub at: Duration,
    /// Processor time since the start.
    pub used: Duration,
}

impl fmt::Display for AttackReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let answers: Vec<String> =
            self.answers.iter().map(|(answer, count)| format!("{count} x {answer}")).collect();
        let used: Duration = self.cpu.iter().filter_map(|readings| Some(readings.last()?.used)).sum();
        write!(f, "{:.1} s of processor time; {}", used.as_secs_f64(), answers.join(", "))
    }
}

/// An attack that runs on threads of its own, so that its processor time can be told from that of the victim, and with
/// open files of its own. Dropping it ends it.
#[derive(Debug)]
pub struct RunningAttack {
    threads: Vec<JoinHandle<Vec<CpuReading>>>,
    log: Arc<AttackLog>,
    end: DropGuard,
}

impl RunningAttack {
    /// Starts an attack.
    ///
    /// # Panics
    /// There is no thread left.
    pub fn start(attacks: Vec<Box<dyn Attack>>, target: &AttackTarget) -> Self {
        let (log, end) = (Arc::new(AttackLog::default()), CancellationToken::new());
        let threads = attacks.into_iter().map(|attack| {
            let (target, log, end) = (target.clone(), Arc::clone(&log), end.clone());
            thread::spawn(move || attack_until(&end, &*attack, &target, &log))
        });
        Self { threads: threads.collect(), log, end: end.drop_guard() }
    }

    /// Ends it. To close thousands of connections at once costs others something: whoever measures beside it does so
    /// before.
    ///
    /// # Panics
    /// The attack panicked.
    pub async fn stop(self) -> AttackReport {
        drop(self.end);
        let join = || self.threads.into_iter().map(JoinHandle::join).collect::<thread::Result<Vec<_>>>();
        let joined = tokio::task::spawn_blocking(join).await.expect("threads can be joined");
        let cpu = joined.expect("an attack does not panic");
        let answers = mem::take(&mut *self.log.0.lock().unwrap_or_else(PoisonError::into_inner));
        AttackReport { answers, cpu }
    }
}

/// Attacks from this thread, and reads its processor time.
fn attack_until(
    end: &CancellationToken,
    attack: &dyn Attack,
    target: &AttackTarget,
    log: &AttackLog,
) -> Vec<CpuReading> {
    let mut cpu = Vec::new();
    runtime_with_own_files().block_on(async {
        tokio::select! {
            () = read_cpu_time(end, &mut cpu) => {}
            () = attack.run(target, log) => unreachable!("it has no end of its own"),
        }
    });
    cpu
}

/// Reads the processor time of this thread until the end: a reading is late where the thread is busy.
async fn read_cpu_time(end: &CancellationToken, readings: &mut Vec<CpuReading>) {
    let (started, before) = (Instant::now(), thread_cpu_time());
    let mut ticks = interval(READING);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // Looked at with each tick and not awaited: only a thread with the same open files can wake this one.
    while !end.is_cancelled() {
        ticks.tick().await;
        readings.push(CpuReading { at: started.elapsed(), used: thread_cpu_time() - before });
    }
}

/// Processor time of this thread, in user and kernel mode.
fn thread_cpu_time() -> Duration {
    let usage = getrusage(UsageWho::RUSAGE_THREAD).expect("a thread may ask for its own usage");
    let duration = |time: TimeVal| {
        let seconds = u64::try_from(time.tv_sec()).unwrap_or_default();
        let micros = u64::try_from(time.tv_usec()).unwrap_or_default();
        Duration::from_secs(seconds) + Duration::from_micros(micros)
    };
    duration(usage.user_time()) + duration(usage.system_time())
}

/// The most resident memory that a process had so far, bytes.
///
/// # Panics
/// The process is gone.
pub fn peak_memory(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).expect("the process is there");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = peak.and_then(|peak| peak.split_whitespace().next()?.parse::<u64>().ok());
    kib.expect("Linux tells the peak") << 10
}

/// The listeners of the platform that is attacked.
#[derive(Debug, Clone)]
pub struct Listeners {
    /// SMTP.
    pub smtp: SocketAddr,
    /// HTTP.
    pub http: SocketAddr,
    /// Probes and metrics, of each process.
    pub admin: Vec<SocketAddr>,
}

/// The platform under attack, with a tenant of the attacker and one of the victim. Neither has a client address that is
/// exempt from limits.
#[derive(Debug, Clone)]
pub struct AttackTarget {
    listeners: Listeners,
    placement: Placement,
    /// Connections to each port of [`AttackKind::IdleConnections`].
    idle_connections: usize,
    pool: PgPool,
    attacker: Tenant,
    victim: Tenant,
    victim_mailboxes: Vec<Mailbox>,
}

impl AttackTarget {
    /// Creates both tenants and so many mailboxes of the victim. `idle_connections` is for each port.
    ///
    /// # Panics
    /// The platform refuses them; the database has them already.
    pub async fn new(
        listeners: Listeners,
        pool: PgPool,
        placement: Placement,
        idle_connections: usize,
        mailboxes: usize,
    ) -> Self {
        let clock = SystemClock::default();
        let attacker = insert_tenant(&pool, &clock, "attacker").await;
        let victim = insert_tenant(&pool, &clock, "victim").await;
        set_mailbox_quota(&pool, victim.id, 100, VICTIM_QUOTA).await;
        let mut target = Self {
            listeners,
            placement,
            idle_connections,
            pool,
            attacker,
            victim,
            victim_mailboxes: Vec::new(),
        };
        let pro = target.victim.pro.clone();
        for number in 0..mailboxes {
            let mailbox = target.mailbox(Some(&pro), &victim::local_part(number)).await;
            target.victim_mailboxes.push(mailbox);
        }
        target.mailbox(Some(&pro), "bystander").await;
        target
    }

    /// Recipient `number` of the attacker's mail.
    fn recipient(&self, number: usize) -> String {
        match self.placement {
            Placement::Apart | Placement::SameClient => format!("shared{number}@{SYSTEM_DOMAIN}"),
            Placement::SameTenant => format!("bystander+{number}@{SYSTEM_DOMAIN}"),
            Placement::SameAddress => victim::address(number % self.victim_mailboxes.len()),
        }
    }

    /// The client address of the attacker.
    fn attacker_address(&self) -> Ipv4Addr {
        Ipv4Addr::new(127, 0, 0, if self.placement == Placement::SameClient { 1 } else { 2 })
    }

    /// The client address of the victim.
    fn victim_address(&self) -> Ipv4Addr {
        Ipv4Addr::new(127, 0, 0, if self.placement == Placement::SameClient { 1 } else { 3 })
    }

    /// The URL of a path.
    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.listeners.http)
    }

    /// A mailbox at the system domain; of a tenant if its Pro token is given.
    async fn mailbox(&self, pro: Option<&str>, local_part: &str) -> Mailbox {
        let request = Request::new(&client(), Method::POST, &self.url("/api/accounts"));
        let address = format!("{local_part}@{SYSTEM_DOMAIN}");
        Mailbox::from_response(&mailbox::create(request, pro, &address, PASSWORD).await)
    }

    /// Further tokens of a tenant.
    async fn tokens(&self, tenant: &Tenant, kind: TokenKind, count: usize) -> Vec<String> {
        let (clock, mut tokens) = (SystemClock::default(), Vec::new());
        for _ in 0..count {
            tokens.push(insert_token(&self.pool, &clock, tenant.id, kind).await);
        }
        tokens
    }
}

/// Connects from a loopback address.
async fn connect(server: SocketAddr, from: Ipv4Addr, receive_buffer: Option<u32>) -> io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    if let Some(bytes) = receive_buffer {
        socket.set_recv_buffer_size(bytes)?;
    }
    socket.bind((from, 0).into())?;
    let stream = socket.connect(server).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}
