// What stands where content is not there: loading, empty, failed.

import { whileBusy } from "./busy.js";
import { everySecond } from "./clock.js";
import { button, element, hiddenText } from "./element.js";
import { icon } from "./icons.js";
import { errorWords } from "../text/errors.js";
import { duration } from "../text/format.js";
import { t } from "../text/text.js";

/** Grey rows in the shape of what is loading. */
export const skeleton = (rows = 5, kind = "row") =>
  element("div", { class: "skeleton", role: "status" }, hiddenText(t("placeholder.loading")),
    Array.from({ length: rows }, () => element("div", { class: `skeleton-${kind}`, "aria-hidden": "true" },
      element("span"), element("span"), element("span"))));

/** Nothing there yet, and what to do about it. */
export const emptyState = ({ name = "inbox", title, text, actions = [], level = "h3" }) =>
  element("div", { class: "empty" },
    element("div", { class: "empty-mark" }, icon(name)),
    element(level, {}, title),
    text && element("p", {}, text),
    actions.length > 0 && element("div", { class: "actions" }, actions));

/** An error in words, with a button to try again, which counts down where the server named a time. */
export function problem(error, retry) {
  const { title, advice } = errorWords(error);
  const again = retry && button({ class: "button" }, t("placeholder.again"));
  if (again) {
    again.addEventListener("click", whileBusy(again, retry));
    if (error.retryAfter) countDown(again, error.retryAfter, retry);
  }
  // The button counts down, and is not in the alert: it would be said each second.
  return element("div", { class: "problem" },
    icon(error.code === "rate_limit_exceeded" ? "clock" : "warning"),
    element("div", { role: "alert" }, element("p", { class: "problem-title" }, title), element("p", {}, advice),
      error.requestId && element("p", { class: "problem-id" }, t("placeholder.request_id", { id: error.requestId }))),
    again);
}

/** Counts down on a button; it is pressed when the time is over, if there is an action. */
export function countDown(node, seconds, action = null) {
  const label = node.querySelector("span") ?? node;
  const text = label.textContent;
  const until = Date.now() + seconds * 1000;
  let isOver = false;
  node.dataset.countsDown = "";
  node.setAttribute("aria-disabled", "true");
  everySecond(node, (now) => {
    if (isOver) return;
    if (now < until) {
      label.textContent = t("placeholder.again_in", { time: duration(until - now) });
      return;
    }
    isOver = true;
    delete node.dataset.countsDown;
    node.removeAttribute("aria-disabled");
    label.textContent = text;
    action?.();
  });
}
