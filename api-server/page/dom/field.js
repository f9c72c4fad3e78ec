// Labelled fields, with a hint and an error that screen readers connect to them.

import { element, uniqueId } from "./element.js";

/** A field: `input` is an input, a select or a textarea. */
export function field({ label, hint, input, suffix }) {
  const id = uniqueId("field");
  const hintId = `${id}-hint`;
  const errorId = `${id}-error`;
  input.id = id;
  input.setAttribute("aria-describedby", hint ? `${errorId} ${hintId}` : errorId);
  const error = element("p", { class: "field-error", id: errorId, "aria-live": "polite" });
  const node = element("div", { class: "field" },
    element("label", { for: id }, label),
    suffix ? element("div", { class: "field-row" }, input, suffix) : input,
    error,
    hint && element("p", { class: "field-hint", id: hintId }, hint));
  const setError = (text) => {
    error.textContent = text;
    if (text) input.setAttribute("aria-invalid", "true");
    else input.removeAttribute("aria-invalid");
  };
  input.addEventListener("input", () => setError(""));
  return { node, input, setError, get value() { return input.value; } };
}

/** A choice between few values, as `[value, text]`. */
export const select = (properties, options, chosen) =>
  element("select", properties, options.map(([value, text]) => element("option", { value, selected: value === chosen }, text)));
