// Forms are sent by script; what is wrong stands at the field, or above the button.

import { whileBusy } from "./busy.js";
import { element } from "./element.js";
import { countDown } from "./placeholder.js";
import { errorLine } from "../text/errors.js";
import { t } from "../text/text.js";

/** Counts down on a button where the service said when to come back. */
export function waitAsTold(node, error) {
  if (error.retryAfter) countDown(node, error.retryAfter);
}

/** `errorFields` has the field that an error's code is about. */
export function form({ label, fields, action, errorFields = {}, kind = "button-primary" }) {
  const failure = element("p", { class: "field-error", role: "alert" });
  const submit = element("button", { class: `button ${kind}`, type: "submit" }, element("span", {}, label));
  const showAt = (wrong, text) => {
    wrong.setError(text);
    wrong.input.focus();
  };
  const run = whileBusy(submit, async () => {
    failure.textContent = "";
    const missing = fields.find(({ input }) => input.required && !input.value.trim());
    if (missing) {
      showAt(missing, t("field.required"));
      return;
    }
    try {
      await action();
    } catch (error) {
      const wrong = errorFields[error.code];
      if (wrong) showAt(wrong, errorLine(error));
      else failure.textContent = errorLine(error);
      waitAsTold(submit, error);
    }
  });
  // Native validation speaks the browser's language and not the page's.
  return element("form", { class: "form", novalidate: true, on: { submit: run } }, fields.map(({ node }) => node), failure, submit);
}
