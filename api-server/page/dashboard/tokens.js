// API tokens of the tenant.

import { confirmAction, openDialog } from "../dom/dialog.js";
import { button, element } from "../dom/element.js";
import { field, select } from "../dom/field.js";
import { form } from "../dom/form.js";
import { icon } from "../dom/icons.js";
import { emptyState } from "../dom/placeholder.js";
import * as api from "../http/pro_api.js";
import { fullDate, fullTime } from "../text/format.js";
import { t } from "../text/text.js";
import { visibleName, visibleString } from "../text/visible.js";
import { showSecret } from "./secret_dialog.js";
import { loaded, pill, sectionHead } from "./section.js";

const LIFETIMES = [7, 30, 90, 365];

export function tokensSection() {
  const create = () => button({ class: "button button-primary", "aria-haspopup": "dialog", on: { click: () => askToCreate(() => list.reload()) } },
    icon("plus"), element("span", {}, t("tokens.create")));
  const list = loaded(api.listTokens, (tokens) => tokens.length === 0
    ? emptyState({ name: "key", title: t("tokens.empty"), text: t("tokens.empty_text"), actions: [create()], level: "h2" })
    : element("ul", { class: "rows" }, tokens.map((token) => row(token, () => list.reload()))));
  return {
    title: t("tokens.title"),
    node: element("div", {}, sectionHead({ title: t("tokens.title"), lead: t("tokens.lead"), actions: [create()] }), list.node),
  };
}

function stateOf(token) {
  if (token.revoked_at) return pill("neutral", t("tokens.revoked", { date: fullDate(token.revoked_at) }));
  if (token.expires_at && Date.parse(token.expires_at) <= Date.now()) return pill("neutral", t("tokens.expired", { date: fullDate(token.expires_at) }));
  return token.expires_at ? pill("warn", t("tokens.until", { date: fullDate(token.expires_at) })) : pill("good", t("tokens.active"));
}

function row(token, reload) {
  const name = visibleString(token.name);
  const isActive = !token.revoked_at && !(token.expires_at && Date.parse(token.expires_at) <= Date.now());
  const revoke = button({ class: "button button-danger-quiet", "aria-label": t("tokens.revoke_label", { name }), on: { click: async () => {
    const isRevoked = await confirmAction({
      title: t("tokens.revoke_title", { name }),
      text: t(token.kind === "pro" ? "tokens.revoke_text_pro" : "tokens.revoke_text"),
      confirm: t("tokens.revoke"),
      action: () => api.revokeToken(token.id),
    });
    if (isRevoked) reload();
  } } }, icon("close"), element("span", {}, t("tokens.revoke")));
  return element("li", { class: "row" },
    element("div", { class: "row-main" },
      element("h2", { class: "row-title" }, visibleName(token.name)),
      element("p", { class: "muted" }, element("code", {}, `tm_${token.kind}_…${token.hint}`), " · ",
        token.last_used_at ? t("tokens.used", { time: fullTime(token.last_used_at) }) : t("tokens.unused"))),
    element("div", { class: "row-state" }, pill("plain", t(token.kind === "live" ? "tokens.kind_live" : "tokens.kind_pro")), stateOf(token)),
    element("div", { class: "actions" }, isActive && revoke));
}

function askToCreate(reload) {
  const name = field({
    label: t("tokens.name"), hint: t("tokens.name_hint"),
    input: element("input", { autocomplete: "off", maxlength: 100, required: true }),
  });
  const kind = field({
    label: t("tokens.kind"), hint: t("tokens.kind_hint"),
    input: select({}, [["live", t("tokens.kind_live_long")], ["pro", t("tokens.kind_pro_long")]], "live"),
  });
  const lifetime = field({
    label: t("tokens.lifetime"),
    input: select({}, [...LIFETIMES.map((days) => [String(days), t("tokens.days", { count: days })]), ["", t("tokens.never")]], "90"),
  });
  const dialog = openDialog({
    title: t("tokens.create"),
    size: "small",
    content: form({
      label: t("tokens.create"),
      fields: [name, kind, lifetime],
      action: async () => {
        const created = await api.createToken({
          name: name.value.trim(), kind: kind.value, expires_in_days: lifetime.value ? Number(lifetime.value) : null,
        });
        dialog.close();
        reload();
        await showSecret({ title: t("tokens.made"), text: t(`tokens.made_${kind.value}`), label: t("tokens.token"), secret: created.token });
      },
    }),
  });
}
