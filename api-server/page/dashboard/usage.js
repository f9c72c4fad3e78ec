// What the tenant uses, against its limits.

import { element } from "../dom/element.js";
import { icon } from "../dom/icons.js";
import { meter } from "../dom/meter.js";
import { readUsage } from "../http/pro_api.js";
import { bytes } from "../text/format.js";
import { language, t } from "../text/text.js";
import { loaded, sectionHead } from "./section.js";

const KINDS = { mailboxes: "inbox", domains: "globe", webhooks: "hook", tokens: "key", bytes: "stack" };

export function usageSection() {
  const list = loaded(readUsage, (usage) =>
    element("ul", { class: "usage" }, Object.keys(KINDS).filter((kind) => usage[kind]).map((kind) => {
      const { used, limit = null } = usage[kind];
      const number = (value) => (kind === "bytes" ? bytes(value) : value.toLocaleString(language));
      const text = limit === null ? t("usage.no_limit", { used: number(used) }) : t("usage.of", { used: number(used), limit: number(limit) });
      return element("li", { class: "card" },
        element("h2", {}, icon(KINDS[kind]), t(`usage.${kind}`)),
        meter({ label: t(`usage.${kind}`), value: used, limit, text }),
        limit !== null && used >= limit && element("p", { class: "caution" }, icon("warning"), t("usage.full")));
    })));
  return {
    title: t("usage.title"),
    node: element("div", {}, sectionHead({ title: t("usage.title"), lead: t("usage.lead") }), list.node),
  };
}
