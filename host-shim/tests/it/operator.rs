//! `feeds` and `opml` as an operator types them: on a data folder, and on a running service.

use std::path::Path;
use std::process::{Command, Output};

use fake_feed_server::{FakeFeedServer, Route};
use serde_json::Value;

use crate::rest::{Program, feeds, prepared};
use crate::support::{PROGRAM, fixtures};

/// How a command reaches the service.
#[derive(Clone, Copy)]
enum Way<'a> {
    Folder(&'a Path),
    Server(&'a str, &'a str),
}

async fn call(way: Way<'_>, arguments: &[&str]) -> Output {
    let mut command = Command::new(PROGRAM);
    command.args(arguments);
    match way {
        Way::Folder(folder) => command.arg("--config").arg(folder.join("host-shim.toml")),
        Way::Server(address, key) => command.args(["--server", &format!("http://{address}")]).env("HOST_SHIM_KEY", key),
    };
    tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
}

fn text(output: &Output) -> (bool, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.success(), text(&output.stdout), text(&output.stderr))
}

fn lines(output: &Output) -> Vec<Value> {
    assert!(output.status.success(), "{output:?}");
    text(output).1.lines().map(|l| serde_json::from_str(l).unwrap()).collect()
}

/// What an operator does with feeds, the same on both ways.
async fn walk(way: Way<'_>, server: &FakeFeedServer) {
    // A feed that asks for no wait, so that a second poll finds it open.
    server.serve("/good", Route::new(std::fs::read(fixtures().join("certify/two-items.rss")).unwrap(), "text/xml"));
    let good = server.url("/good");
    // A rest is for a whole host, so the one that asks for it has another address.
    let other = FakeFeedServer::start_on(std::net::TcpListener::bind("127.0.0.2:0").unwrap()).await;
    let busy = other.url("/busy");
    other.serve("/busy", Route { status: Some(429), ..Route::new("later", "text/plain") });
    let added = lines(&call(way, &["--json", "feeds", "add", &good, "--name", "harbour", "--label", "area=sea"]).await);
    assert_eq!(added[0]["labels"]["area"], "sea");
    assert_eq!(added[0]["source_namespace"], format!("{}/good", server.address()));
    // The first corpus of all was made; the second feed goes there too.
    let more = lines(&call(way, &["--json", "feeds", "add", &busy]).await);
    assert_eq!(more[0]["corpus_id"], added[0]["corpus_id"]);
    let (ok, _, said) = text(&call(way, &["feeds", "add", &good]).await);
    assert!(!ok && said.contains("(source_namespace_in_use)"), "{said}");
    let (ok, _, said) = text(&call(way, &["feeds", "add", "ftp://example.org/"]).await);
    assert!(!ok && said.contains("(invalid_config)"), "{said}");

    // By name, by address, by identifier.
    let id = added[0]["connector_id"].as_str().unwrap();
    let (ok, polled, _) = text(&call(way, &["feeds", "poll", "harbour"]).await);
    // A running service may have polled it already.
    let brought = |new: u32| polled.contains(&format!("completed  {id}  harbour: {new} new, 0 changed"));
    assert!(ok && (brought(2) || (brought(0) && matches!(way, Way::Server(..)))), "{polled}");
    let shown = lines(&call(way, &["--json", "feeds", "show", &good]).await);
    assert_eq!(shown[0]["counts"]["records"], 2);
    let (_, shown, _) = text(&call(way, &["feeds", "show", id]).await);
    assert!(shown.contains("2, 2 of them in the feed now") && shown.contains("active"), "{shown}");
    let (ok, _, said) = text(&call(way, &["feeds", "show", "nothing like it"]).await);
    assert!(!ok && said.contains("`feeds list` shows all"), "{said}");

    // Turned away everywhere is a failure that a script sees; turned away here and there is not.
    let (ok, polled, said) = text(&call(way, &["feeds", "poll", &busy]).await);
    assert!(!ok && polled.contains("throttled"), "{polled}{said}");
    // A running service was turned away already, and does not ask again.
    let why = if matches!(way, Way::Folder(_)) { "rate_limited" } else { "not before" };
    assert!(polled.contains(why), "{polled}");
    assert_eq!(other.requests().len(), 1);
    let (_, listed, _) = text(&call(way, &["feeds", "list"]).await);
    assert!(listed.lines().any(|l| l.contains("throttled") && l.ends_with("/busy")), "{listed}");

    let removed = lines(&call(way, &["--json", "feeds", "remove", "harbour"]).await);
    assert_eq!(removed[0]["enabled"], false);
    let left = lines(&call(way, &["--json", "feeds", "list"]).await);
    assert_eq!(left.len(), 1);
    assert_eq!(lines(&call(way, &["--json", "feeds", "list", "--all"]).await).len(), 2);
    let (ok, _, said) = text(&call(way, &["feeds", "poll", "--all"]).await);
    assert!(!ok && said.contains("not one of the feeds could be polled: 1 throttled"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn feeds_are_operated_in_a_data_folder() {
    let server = feeds().await;
    let folder = prepared("operator-folder");
    walk(Way::Folder(&folder), &server).await;
    // The folder is free again, and a service finds what was made.
    let program = Program::start(&folder, "");
    let (ok, _, said) = text(&call(Way::Folder(&folder), &["feeds", "list"]).await);
    assert!(!ok && said.contains("--server http://"), "{said}");
    let way = Way::Server(&program.caller.address, &program.caller.key);
    assert_eq!(lines(&call(way, &["--json", "feeds", "list", "--all"]).await).len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn feeds_are_operated_on_a_running_service() {
    let server = feeds().await;
    let program = Program::start(&prepared("operator-server"), "");
    walk(Way::Server(&program.caller.address, &program.caller.key), &server).await;
    let (ok, _, said) = text(&call(Way::Server(&program.caller.address, "hs_wrong"), &["feeds", "list"]).await);
    assert!(!ok && said.contains("(unauthenticated)"), "{said}");
    assert!(!said.contains("hs_wrong"));
    // A port that nobody listens on any more.
    let address = program.caller.address.clone();
    let key = program.kill();
    let (ok, _, said) = text(&call(Way::Server(&address, &key), &["feeds", "list"]).await);
    assert!(!ok && said.contains("cannot call http://") && !said.contains(&key), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_go_in_and_come_out() {
    let folder = prepared("operator-opml");
    let way = Way::Folder(&folder);
    let list = folder.join("list.opml");
    let feed = |n: usize| format!("<outline text=\"Feed {n}\" xmlUrl=\"https://example.org/{n}?a=1&amp;b=2\"/>");
    // Two parts and a bit, so that the order holds from part to part.
    let first: String = (0..300).map(feed).collect();
    let second: String = (300..520).map(feed).collect();
    let good = format!(
        "<opml version=\"2.0\"><body><outline text=\"North\">{first}<outline text=\"Sea\">{second}</outline></outline>\
         <outline title=\"Again\" xmlUrl=\"HTTPS://EXAMPLE.ORG/7?a=1&amp;b=2#x\"/></body></opml>"
    );
    for (broken, why) in [
        (good.replace("</body>", ""), "not well-formed"),
        (format!("<!DOCTYPE opml [<!ENTITY a \"b\">]>{good}"), "document type"),
        ("<rss/>".to_owned(), "not OPML"),
    ] {
        std::fs::write(&list, broken).unwrap();
        let (ok, _, said) = text(&call(way, &["opml", "import", list.to_str().unwrap()]).await);
        assert!(!ok && said.contains(why) && said.contains("(invalid_opml)"), "{said}");
        assert!(!folder.join("data").exists(), "a broken file changes nothing");
    }
    std::fs::write(&list, &good).unwrap();
    let imported = lines(&call(way, &["--json", "opml", "import", list.to_str().unwrap(), "--interval", "3600"]).await);
    assert_eq!(imported.last().unwrap(), &serde_json::json!({"added": 520, "skipped": 1}));
    let skipped: Vec<&Value> = imported.iter().filter_map(|l| l.get("skipped_feed")).collect();
    assert_eq!((skipped[0]["because"].as_str(), skipped[0]["name"].as_str()), (Some("duplicate"), Some("Again")));
    let listed = lines(&call(way, &["--json", "feeds", "list"]).await);
    let names: Vec<&str> = listed.iter().map(|f| f["name"].as_str().unwrap()).collect();
    let expected: Vec<String> = (0..520).map(|n| format!("Feed {n}")).collect();
    assert_eq!(names, expected);
    assert_eq!(listed[519]["labels"], serde_json::json!({"folder": "North", "folder.2": "Sea"}));
    assert_eq!(listed[0]["schedule"]["interval_seconds"], 3_600);

    let out = folder.join("out.opml");
    assert!(call(way, &["opml", "export", "--output", out.to_str().unwrap()]).await.status.success());
    let read = |path: &Path| host_shim::opml::read(&std::fs::read(path).unwrap()).unwrap();
    let (mut before, after) = (read(&list), read(&out));
    before.pop();
    assert_eq!(before, after);
    // A second import adds nothing and says so.
    let (ok, said, _) = text(&call(way, &["opml", "import", out.to_str().unwrap()]).await);
    assert!(ok && said.ends_with("0 added, 520 skipped\n"), "{said}");
}
