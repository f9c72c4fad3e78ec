// Everything that the tenant owns, live, newest first.

import { confirmAction } from "../dom/dialog.js";
import { button, element } from "../dom/element.js";
import { icon } from "../dom/icons.js";
import { emptyState } from "../dom/placeholder.js";
import { toast } from "../dom/toast.js";
import { everything } from "../http/pro_api.js";
import { t } from "../text/text.js";
import { MailPanes } from "./mail_panes.js";
import { sectionHead } from "./section.js";

export function everythingSection({ feed }) {
  const panes = new MailPanes({
    feed,
    api: everything,
    href: "#/everything",
    showsRecipient: true,
    empty: () => emptyState({ title: t("everything.empty"), text: t("everything.empty_text") }),
  });
  const deleteAll = button({ class: "button button-danger-quiet", on: { click: async () => {
    const isDeleted = await confirmAction({
      title: t("everything.delete_title"),
      text: t("everything.delete_text"),
      confirm: t("everything.delete_all"),
      action: () => everything.deleteAll(),
    });
    if (!isDeleted) return;
    location.hash = "#/everything";
    feed.messages.clear();
    toast(t("everything.deleted"));
    feed.refresh().catch(() => {});
  } } }, icon("trash"), element("span", {}, t("everything.delete_all")));
  return {
    title: t("everything.title"),
    node: element("div", { class: "mail-section" },
      sectionHead({ title: t("everything.title"), lead: t("everything.lead"), actions: [deleteAll] }), panes.node),
    panes,
    show: ([id]) => panes.show(id ?? null),
    close: () => panes.close(),
  };
}
