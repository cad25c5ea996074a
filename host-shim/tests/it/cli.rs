//! The program as other tools call it.

use std::process::{Command, Output};

use fake_feed_server::{FakeFeedServer, Route};
use serde_json::Value;

use crate::support::{PROGRAM, component, fixtures};

fn program(arguments: &[&str]) -> Output {
    Command::new(PROGRAM).args(arguments).output().unwrap()
}

fn lines(output: &Output) -> Vec<Value> {
    String::from_utf8(output.stdout.clone()).unwrap().lines().map(|l| serde_json::from_str(l).unwrap()).collect()
}

async fn run(arguments: Vec<String>) -> Output {
    tokio::task::spawn_blocking(move || Command::new(PROGRAM).args(arguments).output().unwrap()).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn poll_prints_items_then_the_page_and_keeps_the_checkpoint() {
    let server = FakeFeedServer::start().await;
    server.serve_folder(&fixtures().join("feeds")).unwrap();
    let state = std::path::Path::new(PROGRAM).with_file_name(format!("test-checkpoint-{}", server.address().port()));
    let arguments = |extra: &[&str]| {
        let mut list: Vec<String> =
            ["poll", "--json", "--now", "2026-09-28T12:00:00Z", "--checkpoint", state.to_str().unwrap()]
                .map(String::from)
                .into();
        list.extend(extra.iter().map(|s| (*s).to_owned()));
        list
    };
    let url = server.url("/rss-2.0.rss");
    let first = run(arguments(&["--allow-private-addresses", &url])).await;
    assert!(first.status.success(), "{first:?}");
    let printed = lines(&first);
    assert_eq!(printed.len(), 4);
    for member in ["record_key", "revision", "parts", "extensions"] {
        assert!(!printed[0][member].is_null(), "{member}");
    }
    let page = &printed[3]["page"];
    assert_eq!(page["checkpoint"].as_str().unwrap(), std::fs::read_to_string(&state).unwrap());
    assert_eq!((page["more"].clone(), page["not_due"].clone()), (false.into(), false.into()));
    assert_eq!(page["window"].as_array().unwrap().len(), 3);
    // The ttl of 30 minutes has not passed.
    let second = run(arguments(&["--allow-private-addresses", &url])).await;
    assert_eq!(lines(&second)[0]["page"]["not_due"], true);
    // Without the exception loopback is refused, and the checkpoint stays.
    let before = std::fs::read_to_string(&state).unwrap();
    let later: Vec<String> = vec![
        "poll".into(),
        "--json".into(),
        "--now".into(),
        "2026-09-28T13:00:00Z".into(),
        "--checkpoint".into(),
        state.to_str().unwrap().into(),
        url,
    ];
    let refused = run(later).await;
    assert_eq!(refused.status.code(), Some(1));
    assert_eq!(lines(&refused)[0]["error"]["code"], "address_not_allowed");
    assert_eq!(std::fs::read_to_string(&state).unwrap(), before);
    std::fs::remove_file(&state).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_may_type_an_address_as_they_do() {
    let server = FakeFeedServer::start().await;
    server.serve("/my%20feed.xml", Route::new("<rss version=\"2.0\"><channel/></rss>", "text/xml"));
    let url = format!(" feed://{}/my feed.xml", server.address());
    let output = run(vec!["poll".into(), "--json".into(), "--allow-private-addresses".into(), url]).await;
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn parse_prints_a_line_for_each_file_and_goes_on() {
    let folder = fixtures();
    let file = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let output = program(&[
        "parse",
        "--json",
        "--url",
        "https://feeds.example.org/x",
        &file("feeds/atom-1.0.atom"),
        &file("refused/truncated.rss"),
        &file("feeds/podcast.rss"),
    ]);
    assert_eq!(output.status.code(), Some(0));
    let printed = lines(&output);
    assert_eq!(printed.iter().map(|l| l["ok"].as_bool().unwrap()).collect::<Vec<_>>(), [true, false, true]);
    assert_eq!(
        printed[0]["window"],
        serde_json::json!(["tag:orbit.example.com,2026:2", "tag:orbit.example.com,2026:1"])
    );
    assert_eq!((printed[1]["class"].clone(), printed[1]["code"].clone()), ("source".into(), "malformed_feed".into()));
    assert!(printed[0]["diagnostics"]["feed"]["title"] == "Orbit");
}

#[test]
fn inspect_shows_only_interfaces_of_the_contract() {
    let output = program(&["inspect", "--json", component("connector.rss.wasm").to_str().unwrap()]);
    let shown = &lines(&output)[0];
    assert_eq!(shown["imports"], serde_json::json!(["corpus:connector/http@0.3.0", "corpus:connector/log@0.3.0"]));
    assert_eq!(
        shown["exports"],
        serde_json::json!(["corpus:connector/connector@0.3.0", "corpus:connector/content@0.3.0"])
    );
    assert_eq!(shown["descriptor"]["id"], "connector.rss");
}

#[test]
fn a_wrong_call_exits_with_2_and_failed_work_with_1() {
    for arguments in [
        vec!["poll"],
        vec!["frobnicate"],
        vec!["poll", "--now", "yesterday", "http://x.example.org/"],
        vec!["parse"],
        vec!["check-url", "--resolve", "nonsense", "http://x.example.org/"],
    ] {
        assert_eq!(program(&arguments).status.code(), Some(2), "{arguments:?}");
    }
    for arguments in
        [vec!["inspect", "/nowhere.wasm"], vec!["poll", "--plugin", "/nowhere.wasm", "http://x.example.org/"]]
    {
        assert_eq!(program(&arguments).status.code(), Some(1), "{arguments:?}");
    }
}

#[test]
fn render_serves_every_form() {
    let file = std::env::temp_dir().join(format!("render-{}.html", std::process::id()));
    std::fs::write(&file, "<p>a <b>b</b> <a href='/c'>c</a></p><script>x</script>").unwrap();
    let render = |form: &str, kind: &str| {
        let path = file.to_str().unwrap();
        let arguments = ["render", "--json", "--form", form, "--kind", kind, "--base-url", "https://a.example/x", path];
        lines(&program(&arguments))[0]["output"].as_str().unwrap().to_owned()
    };
    assert_eq!(render("text", "html"), "a b c");
    assert_eq!(render("markdown", "html"), "a **b** [c](https://a.example/c)");
    assert_eq!(
        render("entry-xml", "xhtml"),
        "<content><paragraph>a <strong>b</strong> <link href=\"https://a.example/c\">c</link></paragraph></content>"
    );
    assert_eq!(
        render("safe-html", "html"),
        "<p>a <b>b</b> <a href=\"https://a.example/c\" rel=\"noopener nofollow ugc\">c</a></p>"
    );
    assert!(render("text", "text").contains("<script>"));
    std::fs::remove_file(file).unwrap();
}

#[test]
fn check_url_explains_its_verdict() {
    let output = program(&[
        "check-url",
        "--json",
        "--resolve",
        "feeds.site.org=93.184.215.14,10.0.0.1",
        "--",
        "http://10.1.2.3/",
        "http://feeds.site.org/",
        "http://other.site.org/",
        "http://93.184.215.14/",
    ]);
    let verdicts: Vec<_> = lines(&output).iter().map(|l| l["verdict"].as_str().unwrap().to_owned()).collect();
    assert_eq!(verdicts, ["deny", "deny", "unresolved", "allow"]);
    let said = &lines(&output)[0];
    assert!(said["reason"].as_str().unwrap().contains("RFC 1918"));
    assert_eq!((&said["rule"], &said["refused"]["range"]), (&"address".into(), &"10.0.0.0/8".into()));
    assert!(said["advice"].as_str().unwrap().contains("\"10.1.2.3/32\""));
}

#[test]
fn check_url_goes_by_what_a_pin_opens() {
    let folder = std::env::temp_dir().join(format!("check-url-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("pin.json");
    std::fs::write(&file, r#"{"allow_networks":["10.1.0.0/16"],"allow_hosts":["nas.lan"],"allow_ports":[81]}"#)
        .unwrap();
    let verdicts = |configuration: &[&str]| {
        let urls = ["http://10.1.2.3:81/", "http://10.2.0.1/", "http://nas.lan/", "http://news.site.org:25/"];
        let resolve = ["--resolve", "nas.lan=10.1.0.7", "--resolve", "news.site.org=93.184.215.14", "--"];
        let output = program(&[&["check-url", "--json"], configuration, &resolve, &urls].concat());
        lines(&output)
            .iter()
            .map(|l| format!("{} {}", l["verdict"].as_str().unwrap(), l["rule"].as_str().unwrap()))
            .collect::<Vec<_>>()
    };
    assert_eq!(verdicts(&[]), ["deny port", "deny address", "deny local-name", "deny port"]);
    let opened = verdicts(&["--configuration", file.to_str().unwrap()]);
    assert_eq!(opened, ["allow none", "deny address", "allow none", "deny port"]);
    std::fs::remove_dir_all(folder).unwrap();
}
