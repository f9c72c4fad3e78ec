//! HTML without anything that runs, submits, refreshes or loads by itself. Work and output are bounded on any input.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ammonia::{Builder, UrlRelative};
use url::Url;

use super::Document;
use super::images::{InlineImages, image_data};
use super::kept::with_kept_elements;
use super::limited::{LimitedWriter, TimedReader};
use super::links::links_of;
use super::style;

/// Bytes of HTML that are looked at.
pub(in crate::message) const HTML_MAX: usize = 5 << 20;
/// Tags, opened or closed, that are looked at.
const TAGS_MAX: usize = 100_000;
/// How long the parser reads.
const PARSE_TIME: Duration = Duration::from_millis(100);
/// Bytes of the sanitized HTML, inline images included.
const OUTPUT_MAX: usize = 16 << 20;
/// Hosts of remote images that are listed.
const HOSTS_MAX: usize = 100;

/// Elements of mail besides those that the library keeps.
const TAGS: [&str; 6] = ["address", "big", "font", "main", "section", "tfoot"];
/// Elements that are removed with what is in them: it is no text, or no reader shows it.
const REMOVED: [&str; 22] = [
    "audio", "canvas", "datalist", "embed", "frame", "frameset", "head", "iframe", "math", "noembed",
    "noframes", "object", "script", "select", "source", "style", "svg", "template", "textarea", "title",
    "video", "xml",
];
/// Attributes of any element. What they say of looks is in old mail.
const ATTRIBUTES: [&str; 12] = [
    "align",
    "bgcolor",
    "border",
    "cellpadding",
    "cellspacing",
    "color",
    "dir",
    "height",
    "nowrap",
    "style",
    "valign",
    "width",
];
/// What links may lead to.
const LINK_SCHEMES: [&str; 4] = ["http", "https", "mailto", "tel"];

/// The sanitized document of `html`, which shows `images`, and remote ones if `remote`.
pub(super) fn sanitize(html: &str, images: InlineImages, remote: bool) -> Document {
    let considered = considered(html);
    let filter = Arc::new(AttributeFilter { images, remote, hosts: Mutex::default() });
    let kept = with_kept_elements(considered);
    let mut reader = TimedReader::new(&kept, Instant::now() + PARSE_TIME);
    let mut writer = LimitedWriter::new(OUTPUT_MAX);
    // Reading from memory does not fail; writing does where there is too much.
    let cleaned = builder(&filter).clean_from_reader(&mut reader);
    let is_complete = cleaned.and_then(|cleaned| cleaned.write_to(&mut writer)).is_ok();
    let html_of_document = writer.into_html(is_complete);
    let hosts = std::mem::take(&mut *filter.hosts.lock().unwrap_or_else(PoisonError::into_inner));
    Document {
        links: links_of(&html_of_document),
        html: html_of_document,
        remote,
        remote_hosts: hosts.into_iter().collect(),
        truncated: !is_complete || reader.truncated || considered.len() < html.len(),
    }
}

/// The part of HTML that is looked at.
fn considered(html: &str) -> &str {
    let mut end = html.len().min(HTML_MAX);
    while !html.is_char_boundary(end) {
        end -= 1;
    }
    let html = &html[..end];
    match html.bytes().enumerate().filter(|(_, byte)| *byte == b'<').nth(TAGS_MAX) {
        Some((at, _)) => &html[..at],
        None => html,
    }
}

fn builder(filter: &Arc<AttributeFilter>) -> Builder<'static> {
    let filter = Arc::clone(filter);
    let mut builder = Builder::default();
    builder
        .add_tags(TAGS)
        .rm_tags(["area", "map"])
        .add_clean_content_tags(REMOVED)
        .add_generic_attributes(ATTRIBUTES)
        .add_tag_attributes("font", ["face", "size"])
        .add_tag_attributes("ol", ["type"])
        .add_tag_attributes("ul", ["type"])
        .add_url_schemes(["cid", "data"])
        .url_relative(UrlRelative::Deny)
        .link_rel(Some("noopener noreferrer nofollow"))
        .set_tag_attribute_value("a", "target", "_blank")
        .attribute_filter(move |element, attribute, value| {
            filter.attribute(element, attribute, value).map(Cow::Owned)
        });
    builder
}

/// Decides on the value of each attribute that is left.
struct AttributeFilter {
    images: InlineImages,
    remote: bool,
    /// Of remote images.
    hosts: Mutex<BTreeSet<String>>,
}

impl AttributeFilter {
    /// The value of an attribute; `None` removes it.
    fn attribute(&self, element: &str, attribute: &str, value: &str) -> Option<String> {
        match (element, attribute) {
            ("a", "href") => link(value),
            ("img", "src") => self.image(value),
            (_, "href" | "src" | "cite") => None,
            (_, "style") => Some(style::harmless(value)).filter(|style| !style.is_empty()),
            _ => Some(value).filter(|value| !has_markup(value)).map(str::to_owned),
        }
    }

    /// The source of an image. What is remote is recorded, and shown over https if the reader asked for it.
    fn image(&self, value: &str) -> Option<String> {
        let mut url = Url::parse(value).ok()?;
        match url.scheme() {
            "cid" => self.images.find(value).map(str::to_owned),
            "data" => image_data(value),
            "http" | "https" => {
                self.record_host(url.host_str()?);
                url.set_scheme("https").ok()?;
                without_user(&mut url);
                self.remote.then(|| url.into())
            }
            _ => None,
        }
    }

    fn record_host(&self, host: &str) {
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        if hosts.len() < HOSTS_MAX {
            hosts.insert(host.to_owned());
        }
    }
}

/// Whether a value has a tag or a comment in it: only where a parser is to be misled.
fn has_markup(value: &str) -> bool {
    let after = |(at, _): (usize, &str)| {
        value[at + 1..].starts_with(|c: char| c.is_ascii_alphabetic() || "/!?".contains(c))
    };
    value.match_indices('<').any(after)
}

/// Where a link goes, written as it is followed.
fn link(value: &str) -> Option<String> {
    let mut url = Url::parse(value).ok().filter(|url| LINK_SCHEMES.contains(&url.scheme()))?;
    without_user(&mut url);
    Some(url.into())
}

/// Removes a name before the host, which looks like a host and is none.
fn without_user(url: &mut Url) {
    // A URL that can have none keeps none.
    let _ = url.set_username("");
    let _ = url.set_password(None);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn html(input: &str, remote: bool) -> String {
        sanitize(input, InlineImages::default(), remote).html
    }

    #[test]
    fn keeps_what_mail_looks_like() {
        let mail = "<table width=\"600\" bgcolor=\"#eee\"><tr><td align=\"center\" style=\"color:red;background:url(x)\">\
            <font face=\"Arial\">Hello <b>you</b></font></td></tr></table>";
        let shown = html(mail, false);
        for kept in
            ["width=\"600\"", "bgcolor=\"#eee\"", "style=\"color:red\"", "face=\"Arial\"", "<b>you</b>"]
        {
            assert!(shown.contains(kept), "{kept}: {shown}");
        }
    }

    #[test]
    fn keeps_texts_of_elements_that_hold_text() {
        for (mail, shown) in [
            (
                "<a href=\"https://a.example/?t=1\"><button style=\"color:#fff;background:#265cc4\">Confirm</button></a>",
                "<span style=\"color:#fff;background:#265cc4\">Confirm</span></a>",
            ),
            (
                "<a href=\"https://a.example/\"><input type=submit value=\"Confirm\"></a>",
                "Confirm</span></a>",
            ),
            ("<p><button>482913</button></p>", "482913"),
            ("<noscript><b>482913</b></noscript>", "<b>482913</b>"),
            ("<marquee>482913</marquee>", "482913"),
            ("<xmp>482913 <b></xmp>", "482913 &lt;b&gt;"),
            ("<plaintext>482913", "482913"),
            ("<applet>482913</applet>", "482913"),
        ] {
            let document = html(mail, false);
            assert!(document.contains(shown), "{mail}: {document}");
        }
        let data = html(
            "<noscript><xml><o:PixelsPerInch>96</o:PixelsPerInch></xml></noscript><datalist>a</datalist>",
            false,
        );
        assert_eq!(data, "");
    }

    #[test]
    fn keeps_backgrounds_that_colours_of_text_are_for() {
        for (mail, shown) in [
            (
                "<html><body bgcolor=\"#101820\"><p style=\"color:#fff\">x</p></body></html>",
                "background-color:#101820",
            ),
            ("<body bgcolor=101820 text=ffffff>x", "<div style=\"background-color:#101820;color:#ffffff\">x"),
            (
                "<body style=\"background:#101820 url(https://a.example/x) repeat-x\">x",
                "<div style=\"background-color:#101820\">x",
            ),
            ("<html style=\"background-color:#101820\">x", "<div style=\"background-color:#101820\">x"),
            ("<td style=\"background:#101820 url(x)\"><b style=\"color:#fff\">x</b></td>", "#101820"),
        ] {
            let document = html(&mail.replace("<td", "<table><tr><td"), false);
            assert!(document.contains(shown), "{mail}: {document}");
        }
    }

    /// A mail, and what must not be in its document, in lower case.
    const HOSTILE: &[(&str, &[&str])] = &[
        ("<script>alert(1)</script>", &["script", "alert"]),
        ("<scr<script>ipt>alert(1)</scr</script>ipt>", &["<script"]),
        ("<img src=x onerror=alert(1)>", &["onerror", "src="]),
        ("<b onclick=alert(1) onmouseover=alert(2)>x</b>", &["onclick", "onmouseover"]),
        ("<a href=\"javascript:alert(1)\">x</a>", &["javascript", "href"]),
        ("<a href=\"java\tscript:alert(1)\">x</a>", &["href"]),
        ("<a href=\"&#106;avascript:alert(1)\">x</a>", &["href"]),
        ("<a href=\" data:text/html,<script>alert(1)</script>\">x</a>", &["href", "script"]),
        ("<a href=\"vbscript:x\">x</a><a href=\"file:///etc/passwd\">x</a>", &["href"]),
        ("<a href=\"//evil.example/x\">x</a><a href=\"/api/me\">x</a><a href=\"#x\">x</a>", &["href"]),
        (
            "<a href=\"https://paypal.com@evil.example/\" ping=\"https://evil.example/p\">x</a>",
            &["paypal.com@", "ping"],
        ),
        (
            "<form action=\"https://evil.example/\"><input name=a><button>go</button></form>",
            &["form", "input", "button"],
        ),
        ("<meta http-equiv=refresh content=\"0;url=https://evil.example\">", &["meta", "refresh", "evil"]),
        ("<base href=\"https://evil.example/\">", &["base", "evil"]),
        (
            "<link rel=stylesheet href=\"https://evil.example/x.css\"><link rel=prefetch href=//x>",
            &["link", "evil"],
        ),
        (
            "<style>@import 'https://evil.example/x'; a{background:url(//evil.example)}</style>",
            &["style", "evil"],
        ),
        ("<div style=\"background:url(https://evil.example/x)\">x</div>", &["url", "evil"]),
        ("<div style=\"background:\\75rl(https://evil.example/x)\">x</div>", &["evil", "\\"]),
        (
            "<iframe src=\"https://evil.example\"></iframe><frameset><frame src=x></frameset>",
            &["frame", "evil"],
        ),
        (
            "<object data=\"https://evil.example\"></object><embed src=x><applet code=x></applet>",
            &["object", "embed", "applet"],
        ),
        (
            "<svg onload=alert(1)><script>alert(2)</script><a xlink:href=\"javascript:alert(3)\">x</a></svg>",
            &["svg", "alert"],
        ),
        ("<svg><style><img src=x onerror=alert(1)></style></svg>", &["svg", "onerror"]),
        (
            "<math><mtext><table><mglyph><style><!--</style><img title=\"--&gt;&lt;img src=1 onerror=alert(1)&gt;\">",
            &["<math", "<style", "<!--"],
        ),
        ("<noscript><p title=\"</noscript><img src=x onerror=alert(1)>\">", &["<noscript", "onerror"]),
        ("<textarea><img title=\"</textarea><img src=x onerror=alert(1)>\">", &["<textarea", "onerror"]),
        ("<xmp><img title=\"</xmp><img src=x onerror=alert(1)>\">", &["<xmp", "onerror"]),
        (
            "<select><template><style><!--</style><a rel=\"--></style></template></select><img id=x src onerror=alert(1)>\">",
            &["<select", "<template", "<style", "onerror"],
        ),
        (
            "<!--[if mso]><script>alert(1)</script><![endif]--><![CDATA[<script>x</script>]]>",
            &["<script", "<!--"],
        ),
        (
            "<video src=\"https://evil.example\" poster=x></video><audio src=y></audio><source src=z>",
            &["video", "audio", "source"],
        ),
        (
            "<img src=\"https://evil.example/p.png\" srcset=\"https://evil.example/q.png 2x\">",
            &["evil", "srcset"],
        ),
        (
            "<img src=\"data:image/svg+xml,<svg onload=alert(1)>\"><img src=\"data:text/html,x\">",
            &["src=", "svg"],
        ),
        (
            "<table background=\"https://evil.example/x\"><td background=x>y</td></table>",
            &["background", "evil"],
        ),
        ("<input type=image src=\"https://evil.example\"><isindex><keygen>", &["input", "isindex", "keygen"]),
        ("<a id=x name=cookie class=y>z</a>", &["id=", "name=", "class="]),
        (
            "<body onload=alert(1) background=\"https://evil.example/x\" style=\"position:fixed\">x",
            &["onload", "evil", "position"],
        ),
        (
            "<button formaction=\"https://evil.example\" onclick=alert(1)>x</button>",
            &["button", "evil", "onclick"],
        ),
        (
            "<input type=submit formaction=//evil.example value='\"><script>alert(1)</script>' style='\"onclick=x'>",
            &["<script", "evil", "onclick=\""],
        ),
        ("<body style='\"onload=alert(1)' dir='\"><script>'>x", &["<script", "onload"]),
        ("<noscript><style><img src=x onerror=alert(1)></style></noscript>", &["style", "onerror"]),
        ("<selectedcontent><b>x</b></selectedcontent>", &["selectedcontent"]),
        ("<blockquote cite=\"https://evil.example\">x</blockquote><q cite=y>z</q>", &["cite", "evil"]),
    ];

    #[test]
    fn removes_everything_that_runs_submits_or_loads() {
        for (input, forbidden) in HOSTILE {
            let shown = html(input, false).to_ascii_lowercase();
            for word in *forbidden {
                assert!(!shown.contains(word), "{word} of {input}\nin {shown}");
            }
        }
    }

    #[test]
    fn is_stable() {
        // The attributes of an element are in no order.
        fn words(html: &str) -> Vec<&str> {
            let mut words: Vec<_> = html.split([' ', '<', '>']).collect();
            words.sort_unstable();
            words
        }
        for (input, _) in HOSTILE {
            let once = html(input, true);
            assert_eq!(words(&html(&once, true)), words(&once), "{input}");
        }
    }

    #[test]
    fn makes_links_open_elsewhere_without_a_trace() {
        let shown = html("<a href=\"https://example.com/a b?x=1&y=2\" target=_self rel=opener>x</a>", false);
        for part in [
            "href=\"https://example.com/a%20b?x=1&amp;y=2\"",
            "target=\"_blank\"",
            "rel=\"noopener noreferrer nofollow\"",
        ] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
        assert!(!shown.contains("_self") && !shown.contains("\"opener\""), "{shown}");
    }

    #[test]
    fn names_remote_images_and_shows_them_only_if_asked_for() {
        let mail = "<img src=\"http://B.example/x\"><img src=\"https://a.example:8443/y\"><img src=\"https://b.example/z\">";
        let blocked = sanitize(mail, InlineImages::default(), false);
        assert_eq!(blocked.remote_hosts, ["a.example", "b.example"]);
        assert!(!blocked.html.contains("src"), "{}", blocked.html);
        let asked = sanitize(mail, InlineImages::default(), true);
        assert_eq!(asked.remote_hosts, blocked.remote_hosts);
        assert!(
            asked.html.contains("src=\"https://b.example/x\"")
                && asked.html.contains("https://a.example:8443/y")
        );
    }

    #[test]
    fn bounds_its_work_on_any_input() {
        let many = |piece: &str| piece.repeat(HTML_MAX / piece.len());
        let numbered: String = (0..100_000).map(|number| format!("<b a{number}>")).collect();
        for (name, input) in [
            ("nested", many("<div>")),
            ("nested formatting", many("<b>")),
            ("nested tables", many("<table><td>")),
            ("formatting before paragraphs", numbered.clone() + &many("<p>x")),
            ("attributes", "<a ".to_owned() + &(0..700_000).map(|n| format!("a{n} ")).collect::<String>()),
            ("selected content", many("<span><selectedcontent>")),
            ("bodies", many("<body bgcolor=red>")),
            ("buttons", many(&format!("<input {}>", (0..700).map(|n| format!("a{n} ")).collect::<String>()))),
            ("misnested", many("<a><table><a>")),
            ("open comments", many("<!--")),
            ("text", many("x ")),
            ("styles", format!("<p style='{}'>", ";".repeat(HTML_MAX - 20))),
            ("backgrounds", format!("<p style='{}'>", "background:(;".repeat((HTML_MAX - 20) / 13))),
        ] {
            let began = Instant::now();
            let document = sanitize(&input, InlineImages::default(), false);
            // Far more than it takes, for machines that are busy; without bounds some of these take minutes.
            assert!(began.elapsed() < Duration::from_secs(20), "{name}: {:?}", began.elapsed());
            assert!(document.html.len() <= OUTPUT_MAX, "{name}");
        }
    }

    #[test]
    fn tells_that_something_is_left_out() {
        assert!(!sanitize("<p>x</p>", InlineImages::default(), false).truncated);
        let long = "ä".repeat(HTML_MAX / 2 + 1);
        let cut = sanitize(&long, InlineImages::default(), false);
        assert!(cut.truncated && cut.html.len() <= HTML_MAX);
        assert!(sanitize(&"<br>".repeat(TAGS_MAX + 1), InlineImages::default(), false).truncated);
    }
}
