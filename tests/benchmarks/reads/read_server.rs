//! The servers that are read from: the program as `tempmail api`, and nginx.

use std::fs::{self, Permissions};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use anyhow::Context as _;

use super::ReadKind;
use super::filled_database::FilledDatabase;
use crate::process::{ServerProcess, tempmail};
use crate::server::{command_without_output, free_port};

/// A server that answers HTTP.
#[derive(Debug)]
pub struct ReadServer {
    /// The server.
    pub process: ServerProcess,
    /// Where it answers.
    pub http: SocketAddr,
}

impl ReadServer {
    /// Starts `tempmail api` over a database.
    ///
    /// # Errors
    /// It does not get ready.
    pub async fn tempmail(program: &Path, stored: &FilledDatabase, directory: &Path) -> anyhow::Result<Self> {
        let (http, admin) = (free_port()?, free_port()?);
        let mut command = tempmail(program, "api", &stored.url, &stored.config);
        command
            .env("TEMPMAIL_HTTP__LISTEN", http.to_string())
            .env("TEMPMAIL_ADMIN__LISTEN", admin.to_string());
        let mut process = ServerProcess::start(&format!("api-{}", http.port()), command, directory)?;
        process.wait_until_answering(admin, "/readyz").await?;
        Ok(Self { process, http })
    }

    /// Starts nginx with a file for each kind of read, of the octets of that read's answer.
    ///
    /// # Errors
    /// It does not start.
    pub async fn nginx(
        program: &Path,
        files: &[(ReadKind, Vec<u8>)],
        directory: &Path,
    ) -> anyhow::Result<Self> {
        let http = free_port()?;
        let root = directory.join("files");
        fs::create_dir(&root)?;
        fs::set_permissions(&root, Permissions::from_mode(0o755))?;
        for (read, octets) in files {
            let file = root.join(read.file());
            fs::write(&file, octets)?;
            fs::set_permissions(&file, Permissions::from_mode(0o644))?;
        }
        let config = directory.join("nginx.conf");
        fs::write(&config, nginx_config(http, directory, &root))?;
        let mut command = command_without_output(program);
        command.arg("-c").arg(&config).arg("-p").arg(directory);
        let mut process = ServerProcess::start("nginx-start", command, directory).with_context(|| {
            format!(
                "{} can't be started: `apt-get install nginx-light`, or name one by NGINX",
                program.display()
            )
        })?;
        process.wait_until_answering(http, &format!("/{}", ReadKind::Inbox.file())).await?;
        Ok(Self { process, http })
    }
}

/// As fast as it can: no log, files kept open, connections kept for ever.
fn nginx_config(http: SocketAddr, directory: &Path, root: &Path) -> String {
    let (directory, root) = (directory.display(), root.display());
    format!(
        "daemon off;
worker_processes auto;
pid {directory}/nginx.pid;
error_log {directory}/nginx.log;
events {{ worker_connections 4096; }}
http {{
    access_log off;
    sendfile on;
    tcp_nopush on;
    keepalive_requests 1000000000;
    open_file_cache max=100;
    default_type application/json;
    client_body_temp_path {directory}/nginx-body;
    proxy_temp_path {directory}/nginx-proxy;
    fastcgi_temp_path {directory}/nginx-fastcgi;
    uwsgi_temp_path {directory}/nginx-uwsgi;
    scgi_temp_path {directory}/nginx-scgi;
    server {{
        listen {http};
        root {root};
    }}
}}
"
    )
}
