// Modal dialogs on <dialog>: the browser keeps the focus inside, closes with Escape and gives the focus back.

import { whileBusy } from "./busy.js";
import { button, element, uniqueId } from "./element.js";
import { icon } from "./icons.js";
import { errorLine } from "../text/errors.js";
import { t } from "../text/text.js";

/** Opens a dialog. `isLocked` ones close only by their own buttons. */
export function openDialog({ title, content, actions = [], size = "medium", isLocked = false, onClose = () => {} }) {
  const id = uniqueId("dialog");
  const dialog = element("dialog", { class: `dialog dialog-${size}`, "aria-labelledby": id },
    // Not <header> and <footer>, which would be landmarks of the page.
    element("div", { class: "dialog-header" },
      element("h2", { id }, title),
      !isLocked && button({ class: "icon-button", "aria-label": t("dialog.close"), on: { click: () => dialog.close() } }, icon("close"))),
    element("div", { class: "dialog-body" }, content),
    actions.length > 0 && element("div", { class: "dialog-actions" }, actions));
  dialog.addEventListener("close", () => {
    // Live regions may have moved into the dialog.
    document.body.append(...dialog.querySelectorAll("[aria-live].visually-hidden"));
    dialog.remove();
    onClose(dialog.returnValue);
  });
  if (isLocked) dialog.addEventListener("cancel", (event) => event.preventDefault());
  else {
    // A press that begins on the backdrop closes; one that selects text and ends there does not.
    dialog.addEventListener("pointerdown", ({ target, clientX: x, clientY: y }) => {
      const { left, right, top, bottom } = dialog.getBoundingClientRect();
      // The dialog's own scroll bar is its target, too.
      if (target === dialog && (x < left || x > right || y < top || y > bottom)) dialog.close();
    });
  }
  document.body.append(dialog);
  dialog.showModal();
  // Where there is something to fill in, not the button that closes.
  dialog.querySelector(".dialog-body :is(input:not([type=checkbox]), select)")?.focus();
  return dialog;
}

/** Asks before something that can't be undone, and carries it out while the dialog is open. */
export function confirmAction({ title, text, confirm, action, isDanger = true }) {
  return new Promise((resolve) => {
    let isDone = false;
    const failure = element("p", { class: "field-error", role: "alert" });
    const yes = button({ class: `button ${isDanger ? "button-danger" : "button-primary"}` }, confirm);
    const dialog = openDialog({
      title,
      size: "small",
      content: [element("div", { class: "prose" }, text), failure],
      actions: [button({ class: "button", autofocus: true, on: { click: () => dialog.close() } }, t("dialog.cancel")), yes],
      onClose: () => resolve(isDone),
    });
    yes.addEventListener("click", whileBusy(yes, async () => {
      failure.textContent = "";
      try {
        await action();
        isDone = true;
        dialog.close();
      } catch (error) {
        failure.textContent = errorLine(error);
      }
    }));
  });
}
