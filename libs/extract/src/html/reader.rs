//! From tokens to shown text: which elements are open, what they hide, and where lines break.

use std::ops::Range;

use html5ever::LocalName;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{Tag, TagKind, Token, TokenSinkResult};

use super::element::{self, Flow, Kinds, Look, PLAIN};
use super::sheet::Sheet;
use super::style::{Color, Declarations, Size, Style};
use super::writer::{Characters, Gap, Writer};
use crate::bounds::{DEPTH_MAX, LINKS_MAX};
use crate::steps;
use crate::text::{Shown, ShownLink};

/// An element that is open.
#[derive(Debug)]
struct OpenElement {
    name: LocalName,
    kind: Kinds,
    /// Its kind, and those of the elements that it is in.
    kinds: Kinds,
    flow: Flow,
    look: Look,
    /// Where a quotation began, if it is one.
    quotes_from: Option<usize>,
}

/// A link that is open.
#[derive(Debug)]
struct OpenLink {
    address: String,
    range: Option<Range<usize>>,
    from: usize,
    alt: String,
    is_shown: bool,
}

/// Reads tokens.
#[derive(Debug)]
pub(super) struct DocumentReader {
    sheet: Sheet,
    open: Vec<OpenElement>,
    /// Elements that were nested too deep to be kept.
    too_deep: usize,
    /// The element whose raw text is passed over, such as `script`.
    raw: Option<LocalName>,
    writer: Writer,
    link: Option<OpenLink>,
    links: Vec<ShownLink>,
    quoted: Vec<Range<usize>>,
    base: Option<String>,
    left_out_hidden: bool,
    /// Whether the style sheets can't be compared with more elements. What follows is not shown: it may be hidden.
    is_over: bool,
}

impl DocumentReader {
    pub(super) fn new(sheet: Sheet, limit: usize, characters: Characters) -> Self {
        Self {
            sheet,
            open: Vec::new(),
            too_deep: 0,
            raw: None,
            writer: Writer::new(limit, characters),
            link: None,
            links: Vec::new(),
            quoted: Vec::new(),
            base: None,
            left_out_hidden: false,
            is_over: false,
        }
    }

    pub(super) fn read(&mut self, token: Token) -> TokenSinkResult<()> {
        match token {
            _ if self.is_over => {}
            Token::TagToken(tag) if tag.kind == TagKind::StartTag => return self.start(&tag),
            Token::TagToken(tag) => self.end(&tag.name),
            Token::CharacterTokens(text) => self.text(&text),
            _ => {}
        }
        TokenSinkResult::Continue
    }

    fn look(&self) -> Look {
        self.open.last().map_or(PLAIN, |open| open.look)
    }

    fn text(&mut self, text: &str) {
        if self.raw.is_some() {
            return;
        }
        let look = self.look();
        if !look.is_seen() {
            // White space tells nothing of hidden text.
            self.left_out_hidden |= text.contains(is_legible);
            return;
        }
        let emphasis = look.emphasis();
        if let (Some(at), Some(link)) = (self.writer.write(text, look.keeps_lines, emphasis), &mut self.link)
        {
            let start = link.range.as_ref().map_or(at, |range| range.start);
            link.range = Some(start..self.writer.end());
        }
    }

    fn start(&mut self, tag: &Tag) -> TokenSinkResult<()> {
        let name = &*tag.name;
        match name {
            "br" => self.writer.break_line(),
            "base" => self.base = self.base.take().or_else(|| attribute(tag, "href")),
            "img" => self.image(tag),
            "input" => self.button(tag),
            _ => {}
        }
        if element::is_void(name) {
            if element::flow(name) != Flow::Inline {
                self.writer.separate(Gap::Line);
            }
            return TokenSinkResult::Continue;
        }
        let (ended, within) = element::implied_ends(name);
        self.end_implied(ended, within);
        if name == "a" {
            self.end_link();
        }
        let flow = element::flow(name);
        let Some((look, style)) = self.look_of(tag) else { return TokenSinkResult::Continue };
        let flow = match style.inline {
            Some(true) if flow == Flow::Line => Flow::Inline,
            Some(false) if flow == Flow::Inline && style.displayed == Some(true) => Flow::Line,
            _ => flow,
        };
        if !look.hidden {
            self.separate_before(flow);
        }
        if name == "a" {
            self.start_link(tag, look.is_seen());
        }
        if self.open.len() < DEPTH_MAX {
            let quotes_from = is_quotation(tag).then(|| self.writer.end());
            let kind = Kinds::of(name);
            let kinds = self.open.last().map_or(kind, |around| around.kinds.or(kind));
            self.open.push(OpenElement { name: tag.name.clone(), kind, kinds, flow, look, quotes_from });
        } else {
            self.too_deep += 1;
        }
        let raw = match name {
            "script" => RawKind::ScriptData,
            // Its text is shown as it is.
            "xmp" => return TokenSinkResult::RawData(RawKind::Rawtext),
            "style" | "iframe" | "noembed" | "noframes" => RawKind::Rawtext,
            "title" | "textarea" => RawKind::Rcdata,
            _ => return TokenSinkResult::Continue,
        };
        self.raw = Some(tag.name.clone());
        TokenSinkResult::RawData(raw)
    }

    fn end(&mut self, name: &LocalName) {
        if self.raw.as_ref().is_some_and(|raw| raw == name) {
            self.raw = None;
        }
        if &**name == "br" || &**name == "p" {
            self.writer.separate(Gap::Line);
        }
        if &**name == "a" {
            self.end_link();
        }
        if self.too_deep > 0 {
            self.too_deep -= 1;
            return;
        }
        let within = match element::is_table_part(name) {
            true if &**name == "table" => Kinds::NONE,
            true => Kinds::TABLE,
            false => Kinds::CELL.or(Kinds::TABLE),
        };
        for (at, open) in self.open.iter().enumerate().rev() {
            steps::count(1);
            if open.name == *name {
                self.close_to(at);
                return;
            }
            if open.kind.meets(within) {
                return;
            }
        }
    }

    fn end_implied(&mut self, ended: Kinds, within: Kinds) {
        let mut close = None;
        for (at, open) in self.open.iter().enumerate().rev() {
            steps::count(1);
            if open.kind.meets(within) || !open.kinds.meets(ended) {
                break;
            }
            if open.kind.meets(ended) {
                close = Some(at);
            }
        }
        if let Some(at) = close {
            self.close_to(at);
        }
    }

    /// Closes open elements down to the one at `at`.
    fn close_to(&mut self, at: usize) {
        for closed in self.open.drain(at..).rev() {
            if let Some(from) = closed.quotes_from {
                self.quoted.push(from..self.writer.end());
            }
            if closed.look.hidden {
                continue;
            }
            match closed.flow {
                Flow::Inline | Flow::Cell => {}
                Flow::Line | Flow::Item => self.writer.separate(Gap::Line),
                Flow::Paragraph => self.writer.separate(Gap::Paragraph),
            }
        }
    }

    fn separate_before(&mut self, flow: Flow) {
        match flow {
            Flow::Inline => {}
            Flow::Cell => self.writer.separate(Gap::Cell),
            Flow::Line => self.writer.separate(Gap::Line),
            Flow::Paragraph => self.writer.separate(Gap::Paragraph),
            Flow::Item => self.writer.begin_item(),
        }
    }

    fn start_link(&mut self, tag: &Tag, is_shown: bool) {
        let Some(address) = attribute(tag, "href") else { return };
        let from = self.writer.end();
        self.link = Some(OpenLink { address, range: None, from, alt: String::new(), is_shown });
    }

    fn end_link(&mut self) {
        let Some(link) = self.link.take() else { return };
        let is_shown = link.range.is_some() || (link.is_shown && !link.alt.is_empty());
        if is_shown && self.links.len() < LINKS_MAX {
            let range = link.range.unwrap_or(link.from..link.from);
            self.links.push(ShownLink { address: link.address, range, alt: link.alt });
        }
    }

    /// The text of a button that has no content.
    fn button(&mut self, tag: &Tag) {
        let is_button = attribute(tag, "type").is_some_and(|of| {
            ["button", "reset", "submit"].iter().any(|button| of.trim().eq_ignore_ascii_case(button))
        });
        let Some(text) = attribute(tag, "value").filter(|_| is_button) else { return };
        if self.look_of(tag).is_some_and(|(look, _)| look.is_seen()) {
            self.text(&text);
        }
    }

    fn image(&mut self, tag: &Tag) {
        let Some((seen, styled)) = self.look_of(tag) else { return };
        if let (Some(link), true) = (&mut self.link, seen.is_seen() && styled.displayed != Some(false)) {
            let alt = attribute(tag, "alt").or_else(|| attribute(tag, "title")).unwrap_or_default();
            if link.alt.len() + alt.len() < 400 {
                link.alt.push_str(&alt);
                link.alt.push(' ');
            }
        }
    }

    /// The look of an element, and what was declared of it; `None` where the document ends for that.
    fn look_of(&mut self, tag: &Tag) -> Option<(Look, Style)> {
        let (mut class, mut id, mut inline) = ("", "", Declarations::default());
        let mut presented = Style::default();
        let mut hidden = element::is_hidden(&tag.name);
        for attribute in &tag.attrs {
            let value = &*attribute.value;
            match &*attribute.name.local {
                "class" => class = value,
                "id" => id = value,
                "style" => inline = Declarations::parse(value),
                "hidden" => hidden = true,
                "bgcolor" => presented.background = Some(Color::parse(value)),
                "background" if !value.is_empty() => presented.background = Some(Color::Unknown),
                "text" if &*tag.name == "body" => presented.color = Some(Color::parse(value)),
                "color" if &*tag.name == "font" => presented.color = Some(Color::parse(value)),
                "size" if &*tag.name == "font" => presented.size = font_size(value),
                _ => {}
            }
        }
        let Some(sheet) = self.sheet.style_of(&tag.name, class, id) else {
            self.is_over = true;
            return None;
        };
        let style =
            presented.then(sheet.normal).then(inline.normal).then(sheet.important).then(inline.important);
        let mut look = self.look();
        look.hidden |= hidden || style.hides();
        look.apply(&tag.name, &style);
        Some((look, style))
    }

    pub(super) fn finish(mut self) -> Shown {
        self.end_link();
        self.close_to(0);
        let cut = self.writer.cut || self.is_over;
        let (text, emphasis) = self.writer.finish();
        self.quoted.sort_by_key(|range| range.start);
        // A quotation in a quotation is part of it.
        let mut quoted: Vec<Range<usize>> = Vec::new();
        for range in self.quoted {
            match quoted.last_mut() {
                Some(last) if last.end >= range.start => last.end = last.end.max(range.end),
                _ => quoted.push(range),
            }
        }
        Shown {
            text: text.into(),
            emphasis,
            quoted,
            links: self.links,
            base: self.base,
            left_out_hidden: self.left_out_hidden,
            cut,
        }
    }
}

/// Whether an element holds an earlier mail.
fn is_quotation(tag: &Tag) -> bool {
    let class = attribute(tag, "class").unwrap_or_default();
    let id = attribute(tag, "id").unwrap_or_default();
    let is_cited = &*tag.name == "blockquote" && attribute(tag, "type").is_some_and(|of| of == "cite");
    is_cited
        || ["gmail_quote", "yahoo_quoted", "moz-cite-prefix", "protonmail_quote", "zmail_extra"]
            .iter()
            .any(|quote| class.split_ascii_whitespace().any(|class| class == *quote))
        || [
            "divRplyFwdMsg",
            "appendonsend",
            "OLK_SRC_BODY_SECTION",
            "mail-editor-reference-message-container",
        ]
        .contains(&id.as_str())
}

fn is_legible(c: char) -> bool {
    c.is_alphanumeric()
}

fn attribute(tag: &Tag, name: &str) -> Option<String> {
    tag.attrs.iter().find(|attribute| &*attribute.name.local == name).map(|found| found.value.to_string())
}

/// The pixels of `<font size>`.
fn font_size(value: &str) -> Option<Size> {
    let size = match value.trim() {
        "0" | "1" => 10.0,
        "2" => 13.0,
        "3" => 16.0,
        "4" | "+1" => 18.0,
        "5" | "+2" => 24.0,
        "6" | "7" | "+3" | "+4" => 32.0,
        _ => return None,
    };
    Some(Size::Px(size))
}
