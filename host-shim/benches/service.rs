//! The whole service at 100 to 100,000 instances: polls and items per second, lag, CPU, memory, time of a start.
//!
//! The service is the real program in a process of its own; the fake feed server, with a name server for as many host
//! names as there are feeds, runs in this one, on the same machine. So the figures hold for both together. The table and
//! its ratios come from one run; `SIZES=100,1000` measures fewer.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    reason = "a benchmark talks to people and fails loudly"
)]

use std::fmt::Write as _;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use fake_feed_server::{FakeDns, FakeFeedServer, Route};
use host_shim::engine::pin::Digest;
use host_shim::store::Store;
use host_shim::store::model::{Corpus, Idempotency, NewInstance};
use host_shim::store::sqlite::{FILE, Sqlite};
use rusqlite::Connection;
use serde_json::json;

/// Instances of each row of the table.
const SIZES: [usize; 4] = [100, 1_000, 10_000, 100_000];

/// Feeds that are polled at most; the others are idle.
const POLLED: usize = 10_000;

/// Items of a feed.
const ITEMS: usize = 20;

/// Polls a second while lag is measured, and for how many seconds.
const STEADY: (usize, usize) = (20, 20);

/// Instances made in one transaction.
const BATCH: usize = 1_000;

/// Clock ticks a second, in which /proc counts (sysconf(_SC_CLK_TCK) is 100 on Linux).
const TICKS: f64 = 100.0;

/// What is measured of one size.
struct Row {
    instances: usize,
    start_ms: f64,
    idle_kib: f64,
    idle_cpu: f64,
    polled: usize,
    polls_per_second: f64,
    items_per_second: f64,
    cpu: f64,
    peak_kib: f64,
    lag_ms: (f64, f64),
    file_mib: f64,
}

fn now_ms() -> i64 {
    i64::try_from(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis()).unwrap()
}

fn built(name: &str) -> PathBuf {
    let own = std::env::current_exe().unwrap();
    own.parent().and_then(Path::parent).unwrap().join(name)
}

fn document(n: usize) -> String {
    let mut out =
        String::from("<rss version=\"2.0\"><channel><title>Bench</title><link>https://bench.example.org/</link>");
    for item in 0..ITEMS {
        let text = "The ferry is late again, and the tide waits for nobody. ".repeat(5);
        let _ = write!(
            out,
            "<item><guid isPermaLink=\"false\">{n}-{item}</guid><title>Item {item} of {n}</title>\
             <link>https://bench.example.org/{n}/{item}</link><pubDate>Mon, 28 Sep 2026 10:{item:02}:00 GMT</pubDate>\
             <description>&lt;p&gt;{text}&lt;/p&gt;</description></item>"
        );
    }
    out + "</channel></rss>"
}

/// The service's process.
struct Service {
    child: Child,
    start: Duration,
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Service {
    fn start(folder: &Path) -> Self {
        let begun = Instant::now();
        let mut child = Command::new(built("host-shim"))
            .args(["serve", "--config"])
            .arg(folder.join("host-shim.toml"))
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(folder.join("log")).unwrap())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        while !lines.next().expect("the service did not start").unwrap().starts_with("listening") {}
        let start = begun.elapsed();
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, start }
    }

    fn proc(&self, file: &str) -> String {
        std::fs::read_to_string(format!("/proc/{}/{file}", self.child.id())).unwrap()
    }

    /// A figure of /proc/PID/status, in KiB.
    fn kib(&self, name: &str) -> f64 {
        let status = self.proc("status");
        let line = status.lines().find_map(|l| l.strip_prefix(name)).unwrap();
        line.split_whitespace().next().unwrap().parse().unwrap()
    }

    /// Seconds of computing so far.
    fn cpu(&self) -> f64 {
        let stat = self.proc("stat");
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
        (fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap()) / TICKS
    }
}

fn configuration(folder: &Path, dns: &FakeDns) {
    let component = built("connector.rss.wasm");
    let digest = Digest::of(&std::fs::read(&component).unwrap()).hex();
    let text = format!(
        "data_dir = \"data\"\nlisten = \"127.0.0.1:0\"\nuser_agent = \"bench (nobody@example.org)\"\n\
         dns_servers = [\"{}\"]\n[[plugins]]\npath = {component:?}\nsha256 = \"{digest}\"\n\
         [plugins.configuration]\nallow_private_addresses = true\n",
        dns.address()
    );
    std::fs::write(folder.join("host-shim.toml"), text).unwrap();
}

/// Makes the instances; the first of them are polled, the others are due in a day.
fn fill(folder: &Path, instances: usize, port: u16) {
    let store = Sqlite::open(&folder.join("data")).unwrap();
    let corpus = Corpus { corpus_id: "c_bench".into(), name: "bench".into(), created_at: 0 };
    store.create_corpus(corpus, &Idempotency { scope: "b".into(), key: "b".into(), request: [0; 32] }).unwrap();
    let made = |n: usize| NewInstance {
        connector_id: format!("con_{n:06}"),
        corpus_id: "c_bench".into(),
        source_namespace: format!("feed-{n}"),
        name: format!("feed {n}"),
        labels: json!({}),
        kind: "rss".into(),
        config: json!({"url": format!("http://f{n}.example.org:{port}/{}", n % POLLED)}),
        interval_seconds: 86_400,
        silent_after_seconds: 86_400,
        credential_warning_seconds: 86_400,
        checkpoint: None,
        credential: None,
    };
    for from in (0..instances).step_by(BATCH) {
        let batch = (from..(from + BATCH).min(instances)).map(made).collect();
        store.create_instances(batch, now_ms()).unwrap().into_iter().for_each(|made| drop(made.unwrap()));
    }
    drop(store);
    sql(folder, &format!("UPDATE instance SET next_run_at = {}, next_run_because = 'interval'", now_ms() + 86_400_000));
}

fn sql(folder: &Path, text: &str) {
    open(folder).execute_batch(text).unwrap();
}

fn open(folder: &Path) -> Connection {
    let connection = Connection::open(folder.join("data").join(FILE)).unwrap();
    connection.busy_timeout(Duration::from_secs(30)).unwrap();
    connection
}

fn count(connection: &Connection, query: &str) -> usize {
    let count: i64 = connection.query_row(query, [], |row| row.get(0)).unwrap();
    usize::try_from(count).unwrap()
}

fn percentile(sorted: &[f64], part: f64) -> f64 {
    let at = ((sorted.len() as f64 - 1.0) * part).round();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an index")]
    let at = at as usize;
    sorted.get(at).copied().unwrap_or(f64::NAN)
}

fn measure(instances: usize, dns: &FakeDns, port: u16) -> Row {
    let folder = built("bench-data").join(instances.to_string());
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(folder.join("data")).unwrap();
    configuration(&folder, dns);
    fill(&folder, instances, port);
    // Once, so that the component is compiled; the second start is what a restart takes.
    drop(Service::start(&folder));
    let service = Service::start(&folder);
    let start_ms = service.start.as_secs_f64() * 1_000.0;
    // Idle: nothing is due.
    std::thread::sleep(Duration::from_secs(2));
    let (idle_kib, before) = (service.kib("VmRSS:"), service.cpu());
    std::thread::sleep(Duration::from_secs(5));
    let idle_cpu = (service.cpu() - before) / 5.0;
    drop(service);
    // Drain: all that are polled are due at once.
    let polled = instances.min(POLLED);
    sql(
        &folder,
        &format!("UPDATE instance SET next_run_at = 0, due_at = 0, next_run_because = 'created' WHERE seq <= {polled}"),
    );
    let service = Service::start(&folder);
    let (begun, before) = (Instant::now(), service.cpu());
    let connection = open(&folder);
    while count(&connection, "SELECT count(*) FROM run WHERE outcome NOT IN ('running', 'abandoned')") < polled {
        std::thread::sleep(Duration::from_millis(100));
        assert!(begun.elapsed() < Duration::from_secs(1_200), "the queue does not empty");
    }
    let seconds = begun.elapsed().as_secs_f64();
    let cpu = (service.cpu() - before) / seconds;
    let items = count(&connection, "SELECT count(*) FROM version");
    let failed = count(&connection, "SELECT count(*) FROM run WHERE outcome = 'failed'");
    assert_eq!((items, failed), (polled * ITEMS, 0), "every item of every feed is there");
    let peak_kib = service.kib("VmHWM:");
    drop(service);
    // Steady: so many a second are due; how late is each?
    let steady = polled.min(STEADY.0 * STEADY.1);
    let from = now_ms() + 3_000;
    let gap = i64::try_from(1_000 / STEADY.0).unwrap();
    sql(
        &folder,
        &format!(
            "UPDATE instance SET next_run_at = {from} + seq * {gap}, due_at = {from} + seq * {gap} WHERE seq <= {steady}; \
             DELETE FROM run;"
        ),
    );
    let service = Service::start(&folder);
    while count(&connection, "SELECT count(*) FROM run WHERE outcome NOT IN ('running', 'abandoned')") < steady {
        std::thread::sleep(Duration::from_millis(200));
    }
    drop(service);
    let mut statement = connection.prepare("SELECT instance, started_at FROM run").unwrap();
    let late = statement.query_map([], |row| Ok(row.get::<_, i64>(1)? - (from + row.get::<_, i64>(0)? * gap))).unwrap();
    let mut late: Vec<f64> = late.map(|ms| ms.unwrap() as f64).collect();
    late.sort_by(f64::total_cmp);
    let file = std::fs::metadata(folder.join("data").join(FILE)).unwrap().len();
    drop(statement);
    drop(connection);
    let _ = std::fs::remove_dir_all(&folder);
    Row {
        instances,
        start_ms,
        idle_kib,
        idle_cpu,
        polled,
        polls_per_second: polled as f64 / seconds,
        items_per_second: items as f64 / seconds,
        cpu,
        peak_kib,
        lag_ms: (percentile(&late, 0.5), percentile(&late, 0.99)),
        file_mib: file as f64 / 1_048_576.0,
    }
}

fn show(rows: &[Row]) {
    println!("\nstore: SQLite, WAL, synchronous=FULL: each page of items is one transaction that is on the disk");
    println!("each feed: {ITEMS} items, a host name of its own; {} polls a second while lag is measured\n", STEADY.0);
    println!(
        "| instances | start ms | idle MiB | idle CPU % | polled | polls/s | items/s | CPU % | peak MiB | lag p50 ms | \
         lag p99 ms | file MiB |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|");
    for row in rows {
        println!(
            "| {} | {:.0} | {:.1} | {:.2} | {} | {:.0} | {:.0} | {:.0} | {:.1} | {:.0} | {:.0} | {:.1} |",
            row.instances,
            row.start_ms,
            row.idle_kib / 1_024.0,
            row.idle_cpu * 100.0,
            row.polled,
            row.polls_per_second,
            row.items_per_second,
            row.cpu * 100.0,
            row.peak_kib / 1_024.0,
            row.lag_ms.0,
            row.lag_ms.1,
            row.file_mib,
        );
    }
    if let [first, .., last] = rows {
        let more = (last.instances - first.instances) as f64;
        println!("\ngrowth from {} to {} instances:", first.instances, last.instances);
        println!("  memory of an idle instance: {:.3} KiB", (last.idle_kib - first.idle_kib) / more);
        println!("  start: x{:.2}", last.start_ms / first.start_ms);
        println!("  idle CPU: {:+.2} % of a core", (last.idle_cpu - first.idle_cpu) * 100.0);
        println!("  polls a second: x{:.2}", last.polls_per_second / first.polls_per_second);
    }
}

#[tokio::main]
async fn main() {
    let server = FakeFeedServer::start().await;
    let port = server.address().port();
    for n in 0..POLLED {
        server.serve(&format!("/{n}"), Route::new(document(n), "application/rss+xml"));
    }
    let dns =
        FakeDns::start(|q| Some(if q.v6 { Vec::new() } else { vec!["127.0.0.1".parse().unwrap()] })).await.unwrap();
    let wanted = std::env::var("SIZES").ok();
    let sizes: Vec<usize> = match &wanted {
        Some(list) => list.split(',').map(|n| n.trim().parse().expect("SIZES is a list of numbers")).collect(),
        None => SIZES.to_vec(),
    };
    let rows = tokio::task::spawn_blocking(move || {
        let mut rows = Vec::new();
        for size in sizes {
            println!("measuring {size} instances");
            rows.push(measure(size, &dns, port));
        }
        rows
    })
    .await
    .unwrap();
    show(&rows);
    drop(server);
}
