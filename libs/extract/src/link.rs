//! Action links: which links complete what a mail is about.

mod address;
mod judge;
mod kind;
mod purpose;

use crate::bounds::ACTION_LINKS_MAX;
use crate::part::Part;
use crate::{ActionLink, Source};
use purpose::Purpose;

/// From this score on a link is an action link.
const SCORE_MIN: f32 = 0.6;

/// Finds the action links of a message, best first.
pub(crate) fn find(parts: &[Part], from_domain: Option<&str>) -> Vec<ActionLink> {
    let purpose = Purpose::of(parts);
    let mut found: Vec<ActionLink> = Vec::new();
    for part in parts.iter().filter(|part| part.source != Source::Subject) {
        let base = part.shown.base.as_deref().and_then(address::base_of);
        for index in 0..part.shown.links.len() {
            let Some(link) = judge::judge(part, index, &purpose, base.as_ref(), from_domain) else {
                continue;
            };
            if link.confidence < SCORE_MIN {
                continue;
            }
            match found.iter_mut().find(|known| known.url == link.url) {
                Some(known) if link.confidence > known.confidence => *known = link,
                Some(_) => {}
                None => found.push(link),
            }
            if found.len() > 64 {
                break;
            }
        }
    }
    found.sort_by(|a, b| b.confidence.total_cmp(&a.confidence));
    found.truncate(ACTION_LINKS_MAX);
    for link in &mut found {
        link.confidence = (link.confidence.clamp(0.5, 0.99) * 100.0).round() / 100.0;
    }
    found
}
