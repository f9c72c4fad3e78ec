// Characters that can't be seen, or that change the order of others, are shown by name: a subject, a name or a file name
// that is not what it seems to be is told apart.

import { element } from "../dom/element.js";
import { t } from "./text.js";

const NAMES = {
  0x00ad: "SHY", 0x034f: "CGJ", 0x061c: "ALM", 0x115f: "HCF", 0x1160: "HJF", 0x180e: "MVS",
  0x200b: "ZWSP", 0x200c: "ZWNJ", 0x200d: "ZWJ", 0x200e: "LRM", 0x200f: "RLM",
  0x2028: "LSEP", 0x2029: "PSEP",
  0x202a: "LRE", 0x202b: "RLE", 0x202c: "PDF", 0x202d: "LRO", 0x202e: "RLO",
  0x2060: "WJ", 0x2066: "LRI", 0x2067: "RLI", 0x2068: "FSI", 0x2069: "PDI",
  0x3164: "HF", 0xfeff: "BOM", 0xffa0: "HHF",
};

// In subjects and names: all of them, control characters, other invisible ones and tags.
const IN_NAMES =
  /[\u0000-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu;
// In texts: what reorders others. Marks and joiners have their use there.
const IN_TEXTS = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f\u202a-\u202e\u2066-\u2069\u{e0000}-\u{e007f}]/gu;

// Emoji and scripts that are written with joiners keep them.
const JOINED = /[\p{Extended_Pictographic}\p{Emoji_Modifier}\ufe0f\p{Script=Arabic}\p{Script=Devanagari}\p{Script=Bengali}\p{Script=Sinhala}\p{Script=Malayalam}\p{Script=Mongolian}]/u;

function isJoiner(text, at) {
  const code = text.charCodeAt(at);
  if (code !== 0x200c && code !== 0x200d) return false;
  const before = [...text.slice(Math.max(0, at - 2), at)].pop() ?? "";
  const after = String.fromCodePoint(text.codePointAt(at + 1) ?? 0);
  return JOINED.test(before) && JOINED.test(after);
}

const codePoint = (character) => `U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`;
const nameOf = (character) => NAMES[character.codePointAt(0)] ?? codePoint(character);
const labelOf = ({ hidden, count }) => (count > 1 ? `${nameOf(hidden)} ×${count}` : nameOf(hidden));

/** What can be read, and runs of one hidden character each. */
function pieces(text, pattern) {
  const found = [];
  let from = 0;
  for (const match of text.matchAll(pattern)) {
    if (isJoiner(text, match.index)) continue;
    if (match.index > from) found.push({ text: text.slice(from, match.index) });
    const last = found.at(-1);
    if (last?.hidden === match[0]) last.count += 1;
    else found.push({ hidden: match[0], count: 1 });
    from = match.index + match[0].length;
  }
  if (from < text.length) found.push({ text: text.slice(from) });
  return found;
}

/** Whether a subject, a name or a file name has hidden characters. */
export const hasHidden = (text) => pieces(text, IN_NAMES).some((piece) => piece.hidden);

/** A subject, a name or a file name for where only plain text can be: titles, labels, notifications. */
export const visibleString = (text) =>
  pieces(text, IN_NAMES).map((piece) => piece.text ?? `[${labelOf(piece)}]`).join("");

/** Thousands of markers would make the page slow: beyond these, hidden characters are replaced. */
export const markerBudget = () => ({ markers: 1_000 });

function marked(found, budget) {
  const nodes = [];
  let rest = "";
  for (const piece of found) {
    if (piece.text !== undefined) {
      if (budget.markers > 0) nodes.push(piece.text);
      else rest += piece.text;
    } else if (budget.markers > 0) {
      budget.markers -= 1;
      nodes.push(marker(piece));
    } else rest += "\ufffd";
  }
  if (rest) nodes.push(rest);
  return nodes;
}

const marker = (piece) =>
  element("span", { class: "hidden-character", title: t("visible.hidden", { code: codePoint(piece.hidden) }) }, labelOf(piece));

/** A subject, a name or a file name as an element of its own direction, which can't reorder what is around it. */
export function visibleName(text) {
  return element("bdi", {}, marked(pieces(text, IN_NAMES), markerBudget()));
}

/** Nodes for a stretch of the text of a mail; stretches of the same text share a budget. */
export const visibleText = (text, budget = markerBudget()) => marked(pieces(text, IN_TEXTS), budget);
