//! The four renderings: shapes of the real world, attacks, and a reader of Markdown that reads back what was written.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails loudly")]

use std::fs;
use std::path::{Path, PathBuf};

use connector_rss::html::address::Addresses;
use connector_rss::html::attributes::Attributes;
use connector_rss::html::document::{self, Block, Span};
use connector_rss::html::tokens::{Token, Tokens};
use connector_rss::html::tree::Tree;
use connector_rss::model::Markup;
use connector_rss::render::{Form, MAX_OUTPUT_BYTES, Rendered};
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

const BASE: &str = "https://quay.example.org/posts/1";

const FORMS: [Form; 4] = [Form::Text, Form::Markdown, Form::EntryXml, Form::SafeHtml];

fn render(source: &str, markup: Markup, base: Option<&str>, form: Form) -> Rendered {
    connector_rss::render::render(source, markup, base, &[form]).pop().unwrap()
}

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures")
}

fn shapes() -> Vec<PathBuf> {
    let files = fs::read_dir(fixtures().join("markup")).unwrap().map(|e| e.unwrap().path());
    let mut shapes: Vec<_> = files.filter(|p| p.to_str().unwrap().ends_with(".source.html")).collect();
    shapes.sort();
    shapes
}

/// Each shape with its four forms, which were read and judged by hand.
#[test]
fn shapes_of_the_real_world_have_their_four_forms() {
    let shapes = shapes();
    assert!(shapes.len() >= 17, "{}", shapes.len());
    for path in shapes {
        let source = fs::read_to_string(&path).unwrap();
        let stem = path.to_str().unwrap().strip_suffix(".source.html").unwrap().to_owned();
        for (form, ending) in
            [(Form::Text, "txt"), (Form::Markdown, "md"), (Form::EntryXml, "xml"), (Form::SafeHtml, "safe.html")]
        {
            let rendered = render(&source, Markup::Html, Some(BASE), form);
            assert!(!rendered.truncated && !rendered.degraded, "{stem}");
            let file = format!("{stem}.{ending}");
            let expected = fs::read_to_string(&file).unwrap_or_else(|e| panic!("{file}: {e}"));
            assert_eq!(rendered.output.trim_end_matches('\n'), expected.trim_end_matches('\n'), "{file}");
        }
    }
}

/// Whether a page may show it: every element, attribute and scheme is one that was chosen.
fn danger(html: &str) -> Option<String> {
    const ELEMENTS: &str = "a abbr b bdi bdo blockquote br caption cite code dd del details dfn div dl dt em figcaption \
                            figure h1 h2 h3 h4 h5 h6 hr i img ins kbd li mark ol p pre q s samp small strong sub summary \
                            sup table tbody td tfoot th thead time tr tt u ul var wbr";
    const ATTRIBUTES: &str = "href rel title src alt width height loading referrerpolicy start colspan rowspan dir lang \
                              data-video-provider data-video-id";
    for token in Tokens::new(html, false) {
        let (name, attributes) = match token {
            Token::Start { name, attributes, .. } => (name, attributes),
            Token::End(name) => (name, ""),
            Token::Text(text) if text.contains('<') => return Some(format!("a bare bracket in {text:?}")),
            Token::Text(_) => continue,
            Token::Raw(_) | Token::Comment | Token::Unclosed(_) => return Some(format!("{token:?}")),
        };
        if !ELEMENTS.split_whitespace().any(|e| e == name) {
            return Some(format!("element {name}"));
        }
        for (attribute, value) in Attributes::new(attributes) {
            if !ATTRIBUTES.split_whitespace().any(|a| a == attribute) {
                return Some(format!("attribute {attribute} of {name}"));
            }
            if matches!(attribute, "href" | "src") {
                let scheme = url::Url::parse(&value).map(|u| u.scheme().to_owned()).unwrap_or_default();
                if !matches!(scheme.as_str(), "http" | "https" | "mailto") {
                    return Some(format!("address {value}"));
                }
            }
        }
    }
    None
}

/// The stored vectors, and every handler and scheme in every spelling of a tag.
fn vectors() -> Vec<String> {
    let mut all: Vec<String> =
        fs::read_to_string(fixtures().join("attacks.txt")).unwrap().lines().map(|l| l.replace("\\n", "\n")).collect();
    for handler in ["onerror", "onload", "onclick", "onmouseover", "onfocus", "ontoggle", "onanimationstart", "onbegin"]
    {
        for tag in
            ["img src=x", "svg", "body", "video><source", "details open", "input autofocus", "p style=x", "a href=#"]
        {
            all.push(format!("<{tag} {handler}=alert(1)>x"));
            all.push(format!("<{tag}/{handler}=\"alert(1)\">x"));
            all.push(format!("<{tag} title=\"x\"{handler}='alert(1)'>x"));
        }
    }
    for scheme in [
        "javascript:",
        "JaVaScRiPt:",
        "java\tscript:",
        "java\nscript:",
        "&#106;avascript:",
        "&#x6A;avascript&colon;",
        "\u{1}javascript:",
        " javascript:",
        "vbscript:",
        "data:text/html,",
        "jav&Tab;ascript:",
        "javascript&NewLine;:",
        "feed:javascript:",
        "view-source:javascript:",
    ] {
        for holder in [
            "a href",
            "img src",
            "iframe src",
            "form action",
            "button formaction",
            "object data",
            "embed src",
            "video poster",
            "blockquote cite",
            "a xlink:href",
            "base href",
            "link href",
        ] {
            all.push(format!("<{holder}=\"{scheme}alert(1)\">x</a>"));
        }
    }
    all
}

#[test]
fn no_attack_survives_in_any_form() {
    let vectors = vectors();
    assert!(vectors.len() >= 200, "{}", vectors.len());
    for vector in &vectors {
        for markup in [Markup::Html, Markup::Xhtml] {
            let safe = render(vector, markup, Some(BASE), Form::SafeHtml).output;
            assert_eq!(danger(&safe), None, "{vector}\n{safe}");
            let again = render(&safe, Markup::Html, None, Form::SafeHtml).output;
            assert_eq!(again, safe, "a fixed point: {vector}");
            let entry = render(vector, markup, Some(BASE), Form::EntryXml).output;
            assert!(!entry.contains("javascript:") || !entry.contains("href=\"javascript"), "{vector}\n{entry}");
            let markdown = render(vector, markup, Some(BASE), Form::Markdown).output;
            assert_eq!(raw_markup(&markdown), None, "{vector}\n{markdown}");
        }
    }
}

fn events(markdown: &str) -> impl Iterator<Item = Event<'_>> {
    Parser::new_ext(markdown, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH)
}

/// Raw HTML that a reader of Markdown would pass through, or a link to what is no address.
fn raw_markup(markdown: &str) -> Option<String> {
    events(markdown).find_map(|event| match event {
        Event::Html(html) | Event::InlineHtml(html) => Some(html.to_string()),
        Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
            let scheme = url::Url::parse(&dest_url).map(|u| u.scheme().to_owned()).unwrap_or_default();
            (!matches!(scheme.as_str(), "http" | "https" | "mailto")).then(|| dest_url.to_string())
        }
        _ => None,
    })
}

/// What a reader of Markdown sees: blocks by their names, spans with their styles.
fn read_back(markdown: &str) -> String {
    let mut out = String::new();
    for event in events(markdown) {
        match event {
            Event::Start(tag) => match tag {
                Tag::Heading { level, .. } => out.push_str(&format!("(h{} ", level as usize)),
                Tag::BlockQuote(_) => out.push_str("(quote "),
                Tag::CodeBlock(pulldown_cmark::CodeBlockKind::Fenced(language)) => {
                    out.push_str(&format!("(pre:{language} "))
                }
                Tag::CodeBlock(_) => out.push_str("(indented "),
                Tag::List(Some(start)) => out.push_str(&format!("(ol:{start} ")),
                Tag::List(None) => out.push_str("(ul "),
                Tag::Item => out.push_str("(li "),
                Tag::Table(_) => out.push_str("(table "),
                Tag::TableHead | Tag::TableRow => out.push_str("(tr "),
                Tag::TableCell => out.push_str("(td "),
                Tag::Emphasis => out.push_str("<em>"),
                Tag::Strong => out.push_str("<strong>"),
                Tag::Link { dest_url, .. } => out.push_str(&format!("<a {dest_url}>")),
                Tag::Image { dest_url, .. } => out.push_str(&format!("<img {dest_url}>")),
                _ => {}
            },
            Event::End(end) => match end {
                TagEnd::Emphasis => out.push_str("</em>"),
                TagEnd::Strong => out.push_str("</strong>"),
                TagEnd::Link => out.push_str("</a>"),
                TagEnd::Image => out.push_str("</img>"),
                TagEnd::Paragraph => out.push('\u{b6}'),
                _ => out.push(')'),
            },
            Event::Text(text) => out.push_str(&text),
            Event::Code(text) => out.push_str(&format!("<code>{text}</code>")),
            Event::HardBreak => out.push_str("<br>"),
            Event::SoftBreak => out.push_str("<soft>"),
            Event::Rule => out.push_str("(hr)"),
            other => out.push_str(&format!("{other:?}")),
        }
    }
    out
}

/// The same of the document that was written.
fn meant(blocks: &[Block], tight: bool) -> String {
    let mut out = String::new();
    for block in blocks {
        match block {
            Block::Paragraph(spans) if tight => out.push_str(&meant_spans(spans)),
            Block::Paragraph(spans) => out.push_str(&format!("{}\u{b6}", meant_spans(spans))),
            Block::Heading(level, spans) => out.push_str(&format!("(h{level} {})", meant_spans(spans))),
            Block::Quote(blocks) => out.push_str(&format!("(quote {})", meant(blocks, false))),
            Block::Code(language, text) => out.push_str(&format!("(pre:{language} {text}\n)")),
            Block::Image(src, alt) => out.push_str(&format!("<img {src}>{alt}</img>\u{b6}")),
            Block::Separator => out.push_str("(hr)"),
            Block::List(start, items) => {
                let is_tight = items.iter().all(|item| {
                    matches!(item.first(), Some(Block::Paragraph(_)))
                        && item[1..].iter().all(|b| matches!(b, Block::List(..)))
                });
                out.push_str(&start.map_or_else(|| "(ul ".to_owned(), |s| format!("(ol:{s} ")));
                for item in items {
                    // A list of one item with one paragraph has no blank line that would make it loose.
                    let loose = !(is_tight || items.len() == 1 && item.len() == 1);
                    out.push_str(&format!("(li {})", meant(item, !loose)));
                }
                out.push(')');
            }
            Block::Table(header, rows) => {
                let width = rows.iter().map(Vec::len).max().unwrap_or(0);
                let row = |cells: &[Vec<Span>]| {
                    let cell = |n: usize| cells.get(n).map(|c| meant_spans(c)).unwrap_or_default();
                    format!("(tr {})", (0..width).map(|n| format!("(td {})", cell(n))).collect::<String>())
                };
                out.push_str("(table ");
                if !header {
                    out.push_str(&row(&[]));
                }
                rows.iter().for_each(|r| out.push_str(&row(r)));
                out.push(')');
            }
        }
    }
    out
}

fn meant_spans(spans: &[Span]) -> String {
    let mut out = String::new();
    let mut open: Vec<String> = Vec::new();
    for span in spans {
        let mut wanted: Vec<String> = Vec::new();
        wanted.extend(span.style.link.as_ref().map(|l| format!("a {l}")));
        wanted.extend(span.style.strong.then(|| "strong".to_owned()));
        wanted.extend(span.style.emphasis.then(|| "em".to_owned()));
        let same = open.iter().zip(&wanted).take_while(|(a, b)| a == b).count();
        while open.len() > same {
            out.push_str(&format!("</{}>", open.pop().unwrap().split(' ').next().unwrap()));
        }
        for tag in &wanted[same..] {
            out.push_str(&format!("<{tag}>"));
            open.push(tag.clone());
        }
        match &span.text {
            Some(text) if span.style.code => out.push_str(&format!("<code>{text}</code>")),
            Some(text) => out.push_str(text),
            None => out.push_str("<br>"),
        }
    }
    while let Some(tag) = open.pop() {
        out.push_str(&format!("</{}>", tag.split(' ').next().unwrap()));
    }
    out
}

fn reads_back(source: &str) -> (String, String, String) {
    let tree = Tree::of(source, Markup::Html);
    let blocks = document::read(&tree, &Addresses::new(Some(BASE)));
    let markdown = render(source, Markup::Html, Some(BASE), Form::Markdown).output;
    (read_back(&markdown), meant(&blocks, false), markdown)
}

#[test]
fn markdown_reads_back_as_what_was_meant() {
    let sources = [
        "<p>1. no list</p><p>- none</p><p># none</p><p>+ none</p><p>= none</p><p>&gt; none</p><p>12) none</p><p>a_b_c *d* `e` [f](g) ![h] &lt;i&gt; &amp;amp; \\ | ~j~</p>",
        "<p>un<em>believ</em>able, <b>&quot;x&quot;</b>y, y<b>&quot;x&quot;</b>, <em>a</em><b>b</b><em>c</em>, <b>a<em>b</em></b></p>",
        "<p>wow!<a href=/x>link</a> <a href='/a(b)_c*'>x<b>y</b></a> <code>a`b</code> <code>`</code> <code> x </code></p>",
        "<ul><li>a<ul><li>b</li></ul></li><li>c</li></ul><ul><li>d</li></ul><ol start=7><li>e</li></ol><ol><li><p>f</p><p>g</p></li></ol>",
        "<blockquote><p>a</p><blockquote>b</blockquote></blockquote><blockquote>c</blockquote>",
        "<pre><code class='language-rust'>fn a() {\n    ```\n}\n</code></pre><hr><h2>x # y #</h2>",
        "<table><tr><th>a|b<th>c<tr><td><b>1</b><td>2<br>3<tr><td>x</table><table><tr><td>1<td>2</table>",
        "<p>a<br>b<br><br>c<img src=/i.png alt='x [y] *z*'>d</p><ul><li><hr></li><li><pre>x</pre></li></ul>",
        "<p>&nbsp;a&nbsp;<b>&nbsp;b</b></p><p>\u{4e2d}<b>\u{6587}\u{ff0c}</b>\u{4e2d}</p>",
        "<p>www.example.org https://example.org a@example.org</p>",
    ];
    for source in sources {
        let (read, meant, markdown) = reads_back(source);
        assert_eq!(read, meant, "{source}\n{markdown}");
    }
    for path in shapes() {
        let (read, meant, markdown) = reads_back(&fs::read_to_string(&path).unwrap());
        assert_eq!(read, meant, "{}\n{markdown}", path.display());
    }
}

#[test]
fn plain_text_passes_through_and_is_escaped_where_the_form_needs_it() {
    let source = "<b>not bold</b> &amp; *plain*\n  two\n";
    let of = |form| render(source, Markup::Text, Some(BASE), form).output;
    assert_eq!(of(Form::Text), source);
    assert_eq!(of(Form::SafeHtml), "<p>&lt;b&gt;not bold&lt;/b&gt; &amp;amp; *plain*<br>  two</p>");
    assert_eq!(
        of(Form::EntryXml),
        "<content><paragraph>&lt;b&gt;not bold&lt;/b&gt; &amp;amp; *plain*<break/>  two</paragraph></content>"
    );
    assert_eq!(of(Form::Markdown), "\\<b\\>not bold\\</b\\> \\&amp; \\*plain\\*\\\n  two");
}

#[test]
fn forms_of_one_reading_are_those_of_their_own() {
    for path in shapes() {
        let source = fs::read_to_string(&path).unwrap();
        for markup in [Markup::Html, Markup::Xhtml, Markup::Text] {
            for forms in [FORMS.to_vec(), FORMS.into_iter().rev().collect(), vec![Form::SafeHtml; 2], Vec::new()] {
                let together = connector_rss::render::render(&source, markup, Some(BASE), &forms);
                let alone: Vec<_> = forms.iter().map(|form| render(&source, markup, Some(BASE), *form)).collect();
                assert_eq!(together, alone, "{}", path.display());
            }
        }
    }
}

#[test]
fn hostile_markup_is_bounded_and_told() {
    let deep = "<div><b>".repeat(20_000) + "end";
    let wide = "<p>x</p>".repeat(120_000);
    let attributes = format!("<p {}>end</p>", "a=\"b\" ".repeat(100_000));
    let unclosed = "<a href='x'><table><tr><td>".repeat(20_000) + "end";
    for (source, degraded) in [(&deep, true), (&wide, true), (&attributes, false), (&unclosed, true)] {
        for form in FORMS {
            let rendered = render(source, Markup::Html, Some(BASE), form);
            assert!(rendered.output.len() <= MAX_OUTPUT_BYTES);
            assert_eq!(rendered.degraded, degraded && form != Form::Text, "{form:?} of {}", source.get(..20).unwrap());
        }
    }
}
