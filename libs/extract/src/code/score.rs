//! How likely a candidate is a code: what speaks for it, its make, and how it looks.

use super::MessageContext;
use super::candidate::Candidate;
use super::evidence::{Evidence, Occurrence, Relation};
use super::shape::{Shape, has_few_vowels, is_date, is_year};
use crate::part::Part;
use crate::text::{Emphasis, Lines};

/// The outcome for a candidate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Judgement {
    pub(super) score: f32,
    pub(super) reason: &'static str,
    /// Whether the name of a one-time code stands right before it.
    pub(super) is_labelled: bool,
}

/// Judges a candidate; nothing if something excludes it, or nothing speaks for it.
pub(super) fn judge(
    candidate: &Candidate,
    part: &Part,
    lines: &Lines,
    context: &MessageContext,
) -> Option<Judgement> {
    if candidate.is_origin_bound {
        return Some(Judgement { score: 0.97, reason: "It is bound to an origin.", is_labelled: false });
    }
    let occurrence = Occurrence::of(candidate, part, lines, context);
    if occurrence.has_unit() || context.names.contains(&candidate.code.to_ascii_uppercase()) {
        return None;
    }
    if candidate.shape == Shape::Letters && occurrence.is_word() {
        return None;
    }
    let evidence = occurrence.evidence()?;
    if !evidence.is_otp && !context.subject_names_code && occurrence.is_to_join() {
        return None;
    }
    let emphasis = part.shown.emphasis_at(candidate.range.start);
    let score = of_relation(&evidence, occurrence.is_introduced())
        + of_context(&evidence, context)
        + of_shape(candidate, &evidence, is_close(candidate, &evidence, &occurrence))?
        + of_look(candidate, emphasis);
    let is_labelled = evidence.is_otp && is_label(evidence.relation);
    Some(Judgement { score, reason: reason(&evidence), is_labelled })
}

/// Whether only a sign or two is between the word and the candidate.
fn is_label(relation: Relation) -> bool {
    matches!(relation, Relation::Before(0..=4))
}

fn of_relation(evidence: &Evidence, is_introduced: bool) -> f32 {
    let near = match evidence.relation {
        Relation::Before(0..=4) => 0.6,
        Relation::Before(5..=40) if is_introduced => 0.58,
        Relation::Before(5..=30) => 0.53,
        Relation::Before(31..=200) if is_introduced => 0.5,
        Relation::Before(31..=80) => 0.46,
        Relation::Before(_) => 0.36,
        Relation::After(0..=30) => 0.56,
        Relation::After(31..=60) => 0.46,
        Relation::After(_) => 0.3,
        Relation::LineBefore => 0.3,
        Relation::Above(1) => 0.58,
        Relation::Above(2) => 0.54,
        Relation::Above(3..=4) => 0.46,
        Relation::Above(_) => 0.4,
        Relation::Below(1) => 0.5,
        Relation::Below(_) => 0.44,
        Relation::Subject => 0.42,
        Relation::Body => 0.36,
    };
    let named = if evidence.is_otp { 0.1 } else { 0.0 };
    let about = if evidence.is_about_auth { 0.08 } else { 0.0 };
    let sides = if evidence.is_from_both_sides { 0.08 } else { 0.0 };
    near + named + about + sides
}

fn of_context(evidence: &Evidence, context: &MessageContext) -> f32 {
    let mut score = 0.0;
    if context.has_auth || context.has_otp {
        score += 0.08;
    } else if context.has_confirm {
        score += 0.04;
    }
    if context.subject_is_about_code {
        score += 0.05;
    }
    if context.has_hint {
        score += 0.05;
    }
    if !context.is_about_proof() && !context.is_terse {
        score -= 0.1;
    }
    if context.has_trade && !evidence.is_otp {
        let is_about_proof = (context.has_auth || context.has_otp) && !evidence.is_about_trade;
        score -= match (is_about_proof, context.has_secret && !context.subject_is_trade) {
            (true, _) => 0.05,
            (false, true) => 0.1,
            (false, false) => 0.35,
        };
    }
    score
}

/// Whether the word and the candidate belong together so closely that hardly anything else can be meant.
fn is_close(candidate: &Candidate, evidence: &Evidence, occurrence: &Occurrence<'_>) -> bool {
    match evidence.relation {
        Relation::Before(0..=4) => true,
        Relation::Before(5..=70) => occurrence.is_introduced(),
        Relation::After(0..=16) => occurrence.opens_sentence(),
        Relation::Above(1..=2) | Relation::Below(1) => candidate.is_alone,
        _ => false,
    }
}

/// What the make of a candidate says; nothing if it takes a closer word.
fn of_shape(candidate: &Candidate, evidence: &Evidence, is_close: bool) -> Option<f32> {
    let code = &candidate.code;
    match candidate.shape {
        Shape::Digits if is_year(code) && !is_close && !candidate.is_marked => None,
        Shape::Digits if is_year(code) => Some(-0.02),
        Shape::Digits if is_date(code) => Some(if is_close { -0.05 } else { -0.15 }),
        Shape::Digits => Some(match code.len() {
            6 => 0.08,
            5 | 8 => 0.03,
            4 | 7 => 0.02,
            9 => -0.03,
            _ => -0.12,
        }),
        Shape::Capitals => Some(0.0),
        Shape::Mixed => Some(-0.08),
        Shape::LetterGroups if is_close => Some(-0.05),
        Shape::Letters if is_close && evidence.is_otp && code.len() >= 5 => Some(-0.1),
        Shape::Letters if is_close && evidence.is_about_auth && has_few_vowels(code) => Some(-0.1),
        Shape::WordAndNumber if is_close && evidence.is_otp => Some(-0.2),
        Shape::WordAndNumber if is_close => Some(-0.3),
        Shape::LetterGroups | Shape::Letters | Shape::WordAndNumber => None,
    }
}

fn of_look(candidate: &Candidate, emphasis: Emphasis) -> f32 {
    let alone = if candidate.is_alone { 0.05 } else { 0.0 };
    let marked = if candidate.is_marked { 0.03 } else { 0.0 };
    let emphasis = match emphasis {
        Emphasis::None => 0.0,
        Emphasis::Bold => 0.03,
        Emphasis::Large => 0.06,
    };
    alone + marked + emphasis
}

fn reason(evidence: &Evidence) -> &'static str {
    if evidence.is_entered {
        return "The reader is asked to enter it.";
    }
    match (evidence.relation, evidence.is_otp) {
        (Relation::Before(_) | Relation::LineBefore, true) => "The name of a one-time code stands before it.",
        (Relation::Before(_) | Relation::LineBefore, false) => "The word for a code stands before it.",
        (Relation::After(_), true) => "The name of a one-time code follows it.",
        (Relation::After(_), false) => "The word for a code follows it.",
        (Relation::Above(_), _) => "It stands out below words that name a code.",
        (Relation::Below(_), _) => "It stands out above words that name a code.",
        (Relation::Subject, _) => "It stands out, and the subject names a code.",
        (Relation::Body, _) => "It is in the subject, and the text names a code.",
    }
}
