//! Where an earlier mail begins that is quoted below the reply.

use crate::words::{Class, Hit};

/// Lines that the fields of a quoted header may take.
const HEADER_LINES: usize = 6;

/// Where in a text the rest is quoted: after `On … wrote:`, `---- Original message ----`, or fields of a header.
/// Quotations by `>` are marked line by line, and what follows them is not.
pub(super) fn quoted_from(text: &str, hits: &[Hit]) -> Option<usize> {
    let mut at = 0;
    let mut hits = hits.iter().filter(|hit| hit.class.is_of_quotation()).peekable();
    for line in text.split_inclusive('\n') {
        let end = at + line.len();
        let (mut is_wrote, mut is_heading, mut is_from) = (false, false, false);
        while let Some(hit) = hits.next_if(|hit| hit.start < end) {
            is_wrote |= hit.class == Class::QuoteWrote;
            is_heading |= hit.class == Class::QuoteHeading;
            is_from |= hit.class == Class::QuoteFrom
                && line[..hit.start - at].trim_matches(['*', ' ', '\t']).is_empty();
        }
        let begins = is_attribution(line, is_wrote)
            || (is_heading && is_heading_line(line))
            || (is_from && has_colon(line) && has_subject(text, end, hits.clone()));
        let next = text[end..].trim_start();
        if begins && !next.starts_with('>') && !next.is_empty() {
            return Some(at);
        }
        at = end;
    }
    None
}

/// `On Monday, Ada <ada@example.org> wrote:`, in any language where it has an address.
fn is_attribution(line: &str, is_wrote: bool) -> bool {
    let line = line.trim_end();
    let digits = line.bytes().filter(u8::is_ascii_digit).count();
    let has_address = line.contains('@') && line.contains('<');
    line.len() < 300 && line.ends_with(':') && digits >= 1 && (is_wrote || (has_address && digits >= 4))
}

fn is_heading_line(line: &str) -> bool {
    let line = line.trim();
    line.chars().count() < 80 && (line.starts_with("--") || line.starts_with("__") || line.starts_with("=="))
}

fn has_colon(line: &str) -> bool {
    line.contains(':')
}

/// Whether a subject field follows within a few lines.
fn has_subject<'a>(text: &str, from: usize, hits: impl Iterator<Item = &'a Hit>) -> bool {
    let end = text[from..].match_indices('\n').nth(HEADER_LINES).map_or(text.len(), |(at, _)| from + at);
    hits.take_while(|hit| hit.start < end).any(|hit| {
        let line_start = text[..hit.start].rfind('\n').map_or(0, |at| at + 1);
        hit.class == Class::QuoteSubject
            && text[line_start..hit.start].trim_matches(['*', ' ', '\t']).is_empty()
            && text[hit.end..].trim_start_matches(['*', ' ']).starts_with(':')
    })
}
