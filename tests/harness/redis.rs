//! A Redis server of one test, without persistence, that the test may stop, kill, pause and flush.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use redis::{Client, Connection, FromRedisValue};

use crate::port::free_port;
use crate::wait::DEADLINE;

/// Waits until the test process, which holds the other end of standard input, ends.
const CLEAN_UP: &str = "read -r _; kill -KILL $1";

/// `redis-server` on a port of loopback.
#[derive(Debug)]
pub struct RedisServer {
    directory: tempfile::TempDir,
    port: u16,
    running: Option<Running>,
}

#[derive(Debug)]
struct Running {
    server: Child,
    clean_up: Child,
    _alive: ChildStdin,
}

impl RedisServer {
    /// Starts a server on a free port, and returns when it responds.
    ///
    /// # Panics
    /// There is no `redis-server`: install Debian's `redis-server`.
    pub fn new() -> Self {
        let directory = tempfile::Builder::new().prefix("tempmail-redis-").tempdir();
        let directory = directory.expect("a directory can be created");
        let mut server = Self { directory, port: free_port().port(), running: None };
        server.start();
        server
    }

    /// Its port on loopback, the same after a restart.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its URL.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Starts it again, empty, and returns when it responds.
    ///
    /// # Panics
    /// It is running, or does not start.
    pub fn start(&mut self) {
        assert!(self.running.is_none(), "Redis is running");
        let mut server = Command::new("redis-server");
        server.args(["--bind", "127.0.0.1", "--port", &self.port.to_string()]);
        server.args(["--save", "", "--appendonly", "no", "--loglevel", "warning", "--dir"]);
        server.arg(self.directory.path());
        server.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let server = server.spawn().expect("`redis-server` is installed");
        let mut clean_up = Command::new("sh");
        clean_up.args(["-c", CLEAN_UP, "sh", &server.id().to_string()]);
        let clean_up = clean_up.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let mut clean_up = clean_up.expect("sh starts");
        let alive = clean_up.stdin.take().expect("standard input is a pipe");
        self.running = Some(Running { server, clean_up, _alive: alive });
        let give_up = Instant::now() + DEADLINE;
        while !self.is_responding() {
            assert!(Instant::now() < give_up, "Redis does not start");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Shuts it down (`SIGTERM`), and waits until it has exited.
    pub fn stop(&mut self) {
        self.end(Signal::SIGTERM);
    }

    /// Kills it (`SIGKILL`).
    pub fn kill(&mut self) {
        self.end(Signal::SIGKILL);
    }

    /// Suspends it (`SIGSTOP`): connections stay open, and nothing is answered.
    pub fn pause(&self) {
        self.signal(Signal::SIGSTOP);
    }

    /// Resumes it (`SIGCONT`).
    pub fn resume(&self) {
        self.signal(Signal::SIGCONT);
    }

    /// Deletes all keys.
    pub fn flush(&self) {
        let _: String = self.query(&["FLUSHALL"]);
    }

    /// The reply to a command.
    ///
    /// # Panics
    /// It is unavailable, or replies with an error.
    pub fn query<T: FromRedisValue>(&self, command: &[&str]) -> T {
        let (name, arguments) = command.split_first().expect("a command has a name");
        let reply = redis::cmd(name).arg(arguments).query(&mut self.connection());
        reply.expect("Redis replies")
    }

    /// A connection.
    ///
    /// # Panics
    /// It is unavailable.
    pub fn connection(&self) -> Connection {
        let client = Client::open(self.url()).expect("the URL is valid");
        client.get_connection().expect("Redis accepts connections")
    }

    fn is_responding(&self) -> bool {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.port));
        let Ok(mut connection) = TcpStream::connect(address) else { return false };
        let mut reply = [0; 5];
        connection.write_all(b"PING\r\n").is_ok()
            && connection.read_exact(&mut reply).is_ok()
            && &reply == b"+PONG"
    }

    fn signal(&self, signal: Signal) {
        let running = self.running.as_ref().expect("Redis is running");
        let pid = i32::try_from(running.server.id()).expect("a process id fits");
        kill(Pid::from_raw(pid), signal).expect("Redis is running");
    }

    fn end(&mut self, signal: Signal) {
        self.signal(signal);
        let Running { mut server, mut clean_up, _alive: alive } =
            self.running.take().expect("Redis is running");
        server.wait().expect("our own child can be waited for");
        // Before its pipe closes: another process may have the id by then.
        clean_up.kill().expect("our own child can be killed");
        drop(alive);
        clean_up.wait().expect("our own child can be waited for");
    }
}

impl Default for RedisServer {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        if self.running.is_some() {
            self.kill();
        }
    }
}
