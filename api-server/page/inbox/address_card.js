// The address of the chosen mailbox, and what to do with it.

import { whileBusy } from "../dom/busy.js";
import { confirmAction, openDialog } from "../dom/dialog.js";
import { copyButton } from "../dom/copy_button.js";
import { button, element } from "../dom/element.js";
import { icon } from "../dom/icons.js";
import { meter } from "../dom/meter.js";
import { qrImage } from "../qr/image.js";
import { bytes, fullTime, roughDuration } from "../text/format.js";
import { t } from "../text/text.js";

export function addressCard(mailbox, { onForget }) {
  const copy = copyButton(mailbox.address, { label: t("card.copy_label", { address: mailbox.address }), text: t("card.copy"), kind: "button-primary" });
  copy.classList.add("copy-address");
  const details = button({ class: "button", "aria-haspopup": "dialog" }, icon("key"), element("span", {}, t("card.details")));
  details.addEventListener("click", whileBusy(details, async () => {
    await mailbox.readAccount();
    showDetails(mailbox, onForget);
  }));
  const [local, domain] = mailbox.address.split("@");
  const facts = element("p", { class: "card-facts" });
  const node = element("section", { class: "address-card", "aria-label": t("card.label") },
    element("div", { class: "card-main" },
      element("p", { class: "eyebrow" }, t("card.label")),
      // A narrow screen may break the line at the @, and nowhere else if it can be helped.
      element("h1", { class: "card-address" }, local, element("wbr"), `@${domain}`),
      facts),
    element("div", { class: "actions" }, copy,
      button({ class: "button", "aria-haspopup": "dialog", on: { click: () => showCode(mailbox) } }, icon("qr"), element("span", {}, t("card.qr"))),
      details));
  const update = () => {
    const text = mailbox.retention === null ? "" : t("card.kept", { time: roughDuration(mailbox.retention) });
    if (facts.textContent !== text) facts.textContent = text;
  };
  update();
  return { node, update };
}

function showCode(mailbox) {
  const image = qrImage(`mailto:${mailbox.address}`, t("card.qr_of", { address: mailbox.address }));
  openDialog({
    title: t("card.qr"),
    size: "small",
    content: image
      ? [image, element("p", { class: "qr-address" }, mailbox.address), element("p", { class: "note" }, t("card.qr_hint"))]
      : element("p", {}, t("card.qr_too_long")),
  });
}

function showDetails(mailbox, onForget) {
  const { account } = mailbox;
  const dialog = openDialog({
    title: t("card.details"),
    content: [
      element("dl", { class: "facts" },
        fact(t("card.address"), mailbox.address),
        account && fact(t("card.created"), fullTime(account.created_at)),
        account && fact(t("card.storage"), meter({
          label: t("card.storage"), value: account.used, limit: account.quota,
          text: t("card.storage_of", { used: bytes(account.used), quota: bytes(account.quota) }),
        })),
        mailbox.password && fact(t("card.password"), element("span", { class: "secret-row" },
          element("code", { class: "secret" }, mailbox.password), copyButton(mailbox.password, { label: t("card.copy_password") })))),
      element("p", { class: "note" }, mailbox.password ? t("card.password_once") : t("card.password_unknown")),
    ],
    actions: [
      button({ class: "button", on: { click: () => {
        dialog.close();
        onForget();
      } } }, icon("sign_out"), element("span", {}, t("card.forget"))),
      button({ class: "button button-danger-quiet", on: { click: async () => {
        const isDeleted = await confirmAction({
          title: t("card.delete_title"),
          text: t("card.delete_text", { address: mailbox.address }),
          confirm: t("card.delete"),
          action: () => mailbox.api.deleteAccount(),
        });
        if (!isDeleted) return;
        dialog.close();
        onForget();
      } } }, icon("trash"), element("span", {}, t("card.delete"))),
    ],
  });
}

const fact = (name, value) => element("div", {}, element("dt", {}, name), element("dd", {}, value));
