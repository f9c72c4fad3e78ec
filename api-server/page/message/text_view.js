// The plain text of a mail, with its links. A long text is shown in steps.

import { button, element } from "../dom/element.js";
import { hostForms } from "../text/host_name.js";
import { t } from "../text/text.js";
import { markerBudget, visibleText } from "../text/visible.js";

const STEP = 100_000;
const MOST_LINKS = 500;
// After the host no character outside ASCII is part of an address.
const LINK = /https?:\/\/[\p{L}\p{M}\p{N}.:@%~_[\]-]+(?:[/?#][!#-&(-;=?-[\]_a-z~]*)?/giu;

/** An address without what belongs to the text around it: from a bracket without its other half on, and punctuation. */
function trimmed(address) {
  const open = [];
  let end = address.length;
  for (const { 0: bracket, index } of address.matchAll(/[()[\]]/g)) {
    if (bracket === "(" || bracket === "[") open.push(index);
    else if (open.pop() === undefined) {
      end = index;
      break;
    }
  }
  return address.slice(0, open[0] ?? end).replace(/[.,;:!?]+$/, "");
}

/** A link to an address as it is written, with the name that DNS is asked for where that looks different. */
function link(url, text, budget) {
  const { ascii, differ } = hostForms(url.hostname);
  return [
    element("a", { href: url.href, target: "_blank", rel: "noopener noreferrer nofollow" }, visibleText(text, budget)),
    differ && element("span", { class: "ascii-host", title: t("links.looks_like") }, ` ${ascii} `),
  ];
}

function linked(text, budget) {
  const nodes = [];
  let from = 0;
  for (const match of text.matchAll(LINK)) {
    if (budget.links === 0) break;
    const written = trimmed(match[0]);
    if (!URL.canParse(written)) continue;
    budget.links -= 1;
    nodes.push(visibleText(text.slice(from, match.index), budget), link(new URL(written), written, budget));
    from = match.index + written.length;
  }
  nodes.push(visibleText(text.slice(from), budget));
  return nodes;
}

export function textView(text) {
  if (!text.trim()) return element("p", { class: "note" }, t("message.no_text"));
  const budget = { links: MOST_LINKS, ...markerBudget() };
  let from = 0;
  const body = element("div", { class: "mail-text", dir: "auto", tabindex: "0", role: "document", "aria-label": t("message.text") });
  const more = button({ class: "button", on: { click: () => step() } }, t("message.show_more"));
  const step = () => {
    // Not in the middle of a line.
    const newline = text.indexOf("\n", from + STEP);
    const to = newline < 0 || newline > from + 2 * STEP ? from + STEP : newline + 1;
    body.append(...linked(text.slice(from, to), budget).flat(Infinity).filter(Boolean));
    from = to;
    more.hidden = from >= text.length;
  };
  step();
  return element("div", {}, body, more);
}
