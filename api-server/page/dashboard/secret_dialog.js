// A secret that is shown once. It leaves the page with its dialog.

import { copyButton } from "../dom/copy_button.js";
import { openDialog } from "../dom/dialog.js";
import { button, element } from "../dom/element.js";
import { icon } from "../dom/icons.js";
import { t } from "../text/text.js";

/** Resolves when the dialog is closed. */
export function showSecret({ title, text, label, secret }) {
  return new Promise((resolve) => {
    const shown = element("code", { class: "secret", tabindex: "0", role: "textbox", "aria-readonly": "true", "aria-label": label }, secret);
    const dialog = openDialog({
      title,
      isLocked: true,
      content: [
        element("p", {}, text),
        element("div", { class: "secret-row" }, shown, copyButton(secret, { label: t("secret.copy", { label }), text: t("card.copy"), kind: "button-primary" })),
        element("p", { class: "notice" }, icon("warning"), t("secret.once")),
      ],
      actions: [button({ class: "button", on: { click: () => dialog.close() } }, t("secret.stored"))],
      onClose: () => {
        shown.textContent = "";
        resolve();
      },
    });
  });
}
