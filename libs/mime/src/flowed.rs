//! `format=flowed` (RFC 3676): lines that end with a space go on in the next one.

use crate::header::line_end;

/// How the lines of a text flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Flowed {
    /// Whether the space before a soft line break is no content (`DelSp=yes`).
    pub(crate) deletes_space: bool,
}

/// A line without its quote marks, its stuffed space and its line end.
struct Line<'a> {
    quote_depth: usize,
    content: &'a str,
    end: &'a str,
}

impl<'a> Line<'a> {
    fn parse(line: &'a str) -> Self {
        let unquoted = line.trim_start_matches('>');
        let content = unquoted.strip_prefix(' ').unwrap_or(unquoted);
        let text = content.trim_end_matches(['\r', '\n']);
        Self { quote_depth: line.len() - unquoted.len(), content: text, end: &content[text.len()..] }
    }

    /// Whether the line is the separator before a signature, which never flows (RFC 3676 4.3).
    fn is_signature(&self) -> bool {
        self.content == "-- "
    }
}

impl Flowed {
    /// The text with its soft line breaks removed. Quoted paragraphs begin with their quote marks and a space; other
    /// line ends stay as they are.
    pub(crate) fn unfold(self, text: &str) -> String {
        let mut unfolded = String::with_capacity(text.len());
        // The quote depth of the paragraph that goes on, and the line end that is missing if it does not.
        let mut open: Option<(usize, &str)> = None;
        let mut at = 0;
        while at < text.len() {
            let next = line_end(text.as_bytes(), at);
            let line = Line::parse(&text[at..next]);
            at = next;
            let goes_on = open.take_if(|(depth, _)| *depth == line.quote_depth && !line.is_signature());
            if goes_on.is_none() {
                unfolded.push_str(open.take().map_or("", |(_, end)| end));
                unfolded.extend(std::iter::repeat_n('>', line.quote_depth));
                unfolded.push_str(if line.quote_depth > 0 { " " } else { "" });
            }
            let is_soft = line.content.ends_with(' ') && !line.is_signature() && !line.end.is_empty();
            if is_soft {
                let space = usize::from(self.deletes_space);
                unfolded.push_str(&line.content[..line.content.len() - space]);
                open = Some((line.quote_depth, line.end));
            } else {
                unfolded.push_str(line.content);
                unfolded.push_str(line.end);
            }
        }
        unfolded.push_str(open.map_or("", |(_, end)| end));
        unfolded
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joins_lines_at_soft_breaks() {
        for (deletes_space, text, unfolded) in [
            (false, "one \r\ntwo\r\nthree \n", "one two\r\nthree \n"),
            (true, "https://a.example/?t=abc \r\ndef\r\n", "https://a.example/?t=abcdef\r\n"),
            (true, "one  \ntwo", "one two"),
            (false, " >not quoted\n From x\n", ">not quoted\nFrom x\n"),
            (false, ">a \n> b\n>> c \n> d\ne", "> a b\n>> c \n> d\ne"),
            (false, "bye \n-- \nAda", "bye \n-- \nAda"),
            (false, "\n \n\n", "\n\n\n"),
            (true, "end ", "end "),
            (false, "", ""),
        ] {
            assert_eq!(Flowed { deletes_space }.unfold(text), unfolded, "{text:?}");
        }
    }
}
