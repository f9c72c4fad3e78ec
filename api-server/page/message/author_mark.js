// The first letter of an author on a ground of its own, by which rows are told apart at a glance.

import { element } from "../dom/element.js";
import { icon } from "../dom/icons.js";

const GROUNDS = 6;

/** The same author has the same ground. It says nothing to a screen reader: the name is beside it. */
export function authorMark(author) {
  const letter = /[\p{L}\p{N}]/u.exec(author)?.[0];
  let sum = 0;
  for (const character of author) sum = (31 * sum + character.codePointAt(0)) % 9973;
  return element("span", { class: `author-mark author-mark-${sum % GROUNDS}`, "aria-hidden": "true" },
    letter ? letter.toUpperCase() : icon("mail"));
}
