// Short notices at the edge of the page, with an action such as Undo.

import { announce } from "./announce.js";
import { button, element } from "./element.js";
import { icon } from "./icons.js";
import { t } from "../text/text.js";

// A popover, to be above an open dialog.
const stack = element("div", { class: "toasts", popover: "manual", role: "region", "aria-label": t("toast.region") });
document.body.append(stack);

/**
 * Shows a notice. It stays while the pointer or the focus is in it.
 * `onEnd(false)` is called when its time is over or it is closed, `onEnd(true)` when the action was chosen.
 */
export function toast(text, { action, seconds = 6, tone = "neutral", onEnd = () => {} } = {}) {
  let left = seconds * 1000;
  let since = 0;
  let timer = 0;
  /** What had the focus before the notice had it. */
  let before = null;
  const end = (chosen) => {
    if (!node.isConnected) return;
    clearTimeout(timer);
    const hasFocus = node.contains(document.activeElement);
    node.remove();
    if (hasFocus) (before?.isConnected ? before : document.getElementById("main"))?.focus({ preventScroll: true });
    if (!stack.hasChildNodes()) stack.hidePopover();
    onEnd(chosen);
  };
  const pause = () => {
    if (timer === 0) return;
    clearTimeout(timer);
    timer = 0;
    left -= Date.now() - since;
  };
  const enter = ({ relatedTarget }) => {
    if (!node.contains(relatedTarget)) before = relatedTarget;
    pause();
  };
  const run = () => {
    if (timer !== 0) return;
    since = Date.now();
    timer = setTimeout(() => end(false), Math.max(left, 1500));
  };
  const node = element("div", { class: `toast toast-${tone}`, on: { pointerenter: pause, pointerleave: run, focusin: enter, focusout: run } },
    element("p", {}, text),
    action && button({ class: "button button-quiet", on: { click: () => end(true) } }, action),
    button({ class: "icon-button", "aria-label": t("toast.close"), on: { click: () => end(false) } }, icon("close")));
  stack.append(node);
  // The one that opened last is above; what has the focus in it is not closed without need.
  if (stack.matches(":popover-open") && document.querySelector("dialog[open]")) stack.hidePopover();
  if (!stack.matches(":popover-open")) stack.showPopover();
  announce(text, { urgent: tone === "danger" });
  run();
  return { close: () => end(false), act: () => end(true) };
}
