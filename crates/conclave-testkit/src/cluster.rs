//! A PostgreSQL of a test's own, in a directory of its own, stopped and removed with it.
//!
//! **Invariant:** it syncs to disk as a real one does; tests of durability mean nothing otherwise.
//!
//! **Invariant:** it listens on a socket in its directory and nowhere else, so that nothing else on the
//! machine is touched and two never meet.

use std::fmt;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

/// Why there is no cluster, with what to do.
#[derive(Debug)]
pub struct NoCluster(String);

impl fmt::Display for NoCluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NoCluster {}

/// A running PostgreSQL.
#[derive(Debug)]
pub struct Cluster {
    root: PathBuf,
    programs: PathBuf,
    databases: AtomicU32,
}

impl Cluster {
    /// Makes and starts one.
    ///
    /// # Errors
    /// When PostgreSQL is not installed or does not start; the sentence says what to do.
    pub fn start() -> Result<Self, NoCluster> {
        let programs = programs().ok_or_else(|| {
            NoCluster(
                "these tests need PostgreSQL: run `cargo xtask test`, which installs it, or \
                 install the package `postgresql`"
                    .to_owned(),
            )
        })?;
        let cluster = Self::empty(programs)?;
        let data = cluster.data();
        let options = ["-A", "trust", "-U", "conclave", "-E", "UTF8", "--locale=C", "--no-sync"];
        cluster.run("initdb", &[&options[..], &["-D", &data]].concat())?;
        cluster.start_again()?;
        Ok(cluster)
    }

    /// Copies everything it has on disk, write-ahead log included, as it is at a loss of power, and
    /// starts both.
    ///
    /// # Errors
    /// When it cannot be stopped, copied or started.
    pub fn copy(&self) -> Result<Self, NoCluster> {
        let copy = Self::empty(self.programs.clone())?;
        copy.databases.store(self.databases.load(Ordering::Relaxed), Ordering::Relaxed);
        self.stop_at_once()?;
        let copied = Command::new("cp").arg("-a").args([self.data(), copy.data()]).status();
        let copied = copied.map_err(|error| NoCluster(format!("cp: {error}")))?;
        if !copied.success() {
            return Err(NoCluster("the files of the server could not be copied".to_owned()));
        }
        self.start_again()?;
        copy.start_again()?;
        Ok(copy)
    }

    /// Where everything it keeps is.
    #[must_use]
    pub fn files(&self) -> PathBuf {
        self.root.join("data")
    }

    fn empty(programs: PathBuf) -> Result<Self, NoCluster> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let n = COUNT.fetch_add(1, Ordering::Relaxed);
        let root = std::env::temp_dir().join(format!("conclave-pg-{}-{n}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        fs::create_dir_all(&root).map_err(|error| NoCluster(error.to_string()))?;
        let cluster = Self { root, programs, databases: AtomicU32::new(0) };
        cluster.hand_over()?;
        Ok(cluster)
    }

    /// An address of a database in it.
    #[must_use]
    pub fn url(&self, database: &str) -> String {
        let socket = self.root.display().to_string().replace('/', "%2F");
        format!("postgres://conclave@{socket}/{database}")
    }

    /// Makes a database nobody has used; returns its address.
    ///
    /// # Errors
    /// When the server refuses.
    pub fn fresh(&self) -> Result<String, NoCluster> {
        let name = format!("fresh{}", self.databases.fetch_add(1, Ordering::Relaxed));
        self.sql("postgres", &format!("CREATE DATABASE {name} TEMPLATE template0"))?;
        Ok(self.url(&name))
    }

    /// Runs a statement as the superuser; returns what it prints.
    ///
    /// # Errors
    /// When the server refuses.
    pub fn sql(&self, database: &str, statement: &str) -> Result<String, NoCluster> {
        let host = self.root.display().to_string();
        let arguments = [
            "-h",
            &host,
            "-U",
            "conclave",
            "-d",
            database,
            "-v",
            "ON_ERROR_STOP=1",
            "-Atc",
            statement,
        ];
        let output = self.run("psql", &arguments)?;
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// Stops it as a loss of power would: nothing is written any more.
    ///
    /// # Errors
    /// When it cannot be stopped.
    pub fn stop_at_once(&self) -> Result<(), NoCluster> {
        let data = self.data();
        self.run("pg_ctl", &["-D", &data, "-m", "immediate", "-w", "stop"]).map(|_| ())
    }

    /// Starts it after it was stopped.
    ///
    /// # Errors
    /// When it does not start.
    pub fn start_again(&self) -> Result<(), NoCluster> {
        let (data, log) = (self.data(), self.root.join("log").display().to_string());
        let settings = format!(
            "-k {} -c listen_addresses= -c fsync=on -c synchronous_commit=on -c max_connections=80",
            self.root.display()
        );
        let arguments = ["-D", &data, "-l", &log, "-o", &settings, "-w", "-t", "60", "start"];
        self.run("pg_ctl", &arguments).map(|_| ())
    }

    /// Sends a signal such as `STOP` or `CONT` to every process of the server.
    ///
    /// # Errors
    /// When the processes cannot be found.
    pub fn signal(&self, signal: &str) -> Result<(), NoCluster> {
        let file = self.root.join("data/postmaster.pid");
        let text = fs::read_to_string(file).map_err(|error| NoCluster(error.to_string()))?;
        let parent = text.lines().next().unwrap_or_default();
        let children = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children"));
        let children = children.map_err(|error| NoCluster(error.to_string()))?;
        let mut command = Command::new("kill");
        command.arg(format!("-{signal}")).arg(parent).args(children.split_whitespace());
        command.status().map(|_| ()).map_err(|error| NoCluster(format!("kill: {error}")))
    }

    fn data(&self) -> String {
        self.root.join("data").display().to_string()
    }

    /// The server refuses to run as root; then it runs as the user its package made.
    fn hand_over(&self) -> Result<(), NoCluster> {
        let mode = fs::Permissions::from_mode(if is_root() { 0o777 } else { 0o700 });
        fs::set_permissions(&self.root, mode).map_err(|error| NoCluster(error.to_string()))
    }

    fn run(&self, program: &str, arguments: &[&str]) -> Result<Output, NoCluster> {
        let path = self.programs.join(program);
        let mut command = if is_root() {
            let mut command = Command::new("runuser");
            command.args(["-u", "postgres", "--"]).arg(&path);
            command
        } else {
            Command::new(&path)
        };
        let output =
            command.args(arguments).current_dir(&self.root).stdin(std::process::Stdio::null());
        // A server that goes on running must not hold on to our pipes, so it gets none.
        let daemon = arguments.last() == Some(&"start");
        let output = if daemon {
            let quiet = || std::process::Stdio::null();
            output.stdout(quiet()).stderr(quiet()).status().map(|status| Output {
                status,
                stdout: Vec::new(),
                stderr: fs::read(self.root.join("log")).unwrap_or_default(),
            })
        } else {
            output.output()
        };
        let output = output.map_err(|error| NoCluster(format!("{program}: {error}")))?;
        if output.status.success() {
            return Ok(output);
        }
        let said = String::from_utf8_lossy(&output.stderr);
        Err(NoCluster(format!("{program} failed: {}", said.trim())))
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let _ = self.signal("CONT");
        let _ = self.stop_at_once();
        let _ = fs::remove_dir_all(&self.root);
    }
}

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|of| std::os::unix::fs::MetadataExt::uid(&of) == 0)
}

/// Where the server's programs are: the newest of those Debian keeps apart, or on the path.
fn programs() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").ok().into_iter().flatten().flatten();
    let mut found: Vec<(u32, PathBuf)> = versions
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path())))
        .collect();
    found.sort();
    let apart = found.into_iter().rev().map(|(_, path)| path.join("bin"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path).collect::<Vec<_>>();
    apart.chain(on_path).find(|dir| has_server(dir))
}

fn has_server(dir: &Path) -> bool {
    ["initdb", "pg_ctl", "psql"].iter().all(|program| dir.join(program).is_file())
}
