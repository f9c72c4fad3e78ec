// Webhooks: their state, what was delivered, and what a receiver needs to know.

import { whileBusy } from "../dom/busy.js";
import { copyButton } from "../dom/copy_button.js";
import { confirmAction, openDialog } from "../dom/dialog.js";
import { button, element } from "../dom/element.js";
import { field } from "../dom/field.js";
import { form } from "../dom/form.js";
import { icon } from "../dom/icons.js";
import { emptyState } from "../dom/placeholder.js";
import { tabView } from "../dom/tabs.js";
import * as api from "../http/pro_api.js";
import { fullTime, milliseconds } from "../text/format.js";
import { t } from "../text/text.js";
import { visibleName } from "../text/visible.js";
import { deliveryChart } from "./delivery_chart.js";
import { deliveryResult } from "./delivery_result.js";
import { showSecret } from "./secret_dialog.js";
import { loaded, pill, sectionHead } from "./section.js";
import { PAYLOAD, SAMPLES } from "./webhook_samples.js";

// A webhook that a Kubernetes resource manages does not say so in its list: the service answers `managed_by_kubernetes`.

const SHOWN_FIRST = 20;
// An event is sent moments after its mail.
const AFTER_MAIL = 2_000;

export function webhooksSection({ stream }) {
  const lifetime = new AbortController();
  const create = () => button({ class: "button button-primary", "aria-haspopup": "dialog", on: { click: () => askToCreate(() => list.reload()) } },
    icon("plus"), element("span", {}, t("webhooks.create")));
  let deliveries = [];
  const list = loaded(api.listWebhooks, (webhooks) => {
    const cards = webhooks.map((webhook) => webhookCard(webhook, () => list.reload()));
    deliveries = cards.map((card) => card.deliveries);
    return webhooks.length === 0
      ? emptyState({ name: "hook", title: t("webhooks.empty"), text: t("webhooks.empty_text"), actions: [create()], level: "h2" })
      : cards.map((card) => card.node);
  });
  let timer = 0;
  stream.addEventListener("mail", () => {
    clearTimeout(timer);
    timer = setTimeout(() => deliveries.forEach(({ reload }) => reload()), AFTER_MAIL);
  }, { signal: lifetime.signal });
  return {
    title: t("webhooks.title"),
    node: element("div", {},
      sectionHead({ title: t("webhooks.title"), lead: t("webhooks.lead"), actions: [create()] }), list.node, receiverGuide()),
    close() {
      clearTimeout(timer);
      lifetime.abort();
    },
  };
}

function askToCreate(reload) {
  const url = field({
    label: t("webhooks.url"), hint: t("webhooks.url_hint"),
    input: element("input", { type: "url", autocomplete: "off", spellcheck: "false", placeholder: "https://hooks.example.com/mail", maxlength: 2048, required: true }),
  });
  const dialog = openDialog({
    title: t("webhooks.create"),
    content: form({
      label: t("webhooks.create"),
      fields: [url],
      errorFields: { invalid_url: url },
      action: async () => {
        const created = await api.createWebhook(url.value.trim());
        dialog.close();
        reload();
        await showSecret({ title: t("webhooks.made"), text: t("webhooks.secret_text"), label: t("webhooks.secret"), secret: created.secret });
      },
    }),
  });
}

function webhookCard(webhook, reload) {
  const { id, url } = webhook;
  const rotate = button({ class: "button", "aria-label": t("webhooks.rotate_label", { url }), on: { click: async () => {
    let secret = null;
    await confirmAction({
      title: t("webhooks.rotate_title"), text: t("webhooks.rotate_text"), confirm: t("webhooks.rotate"),
      action: async () => {
        secret = (await api.rotateSecret(id)).secret;
      },
    });
    if (secret === null) return;
    await showSecret({ title: t("webhooks.rotated"), text: t("webhooks.secret_text"), label: t("webhooks.secret"), secret });
    reload();
  } } }, icon("refresh"), element("span", {}, t("webhooks.rotate")));
  const remove = button({ class: "button button-danger-quiet", "aria-label": t("webhooks.delete_label", { url }), on: { click: async () => {
    const isDeleted = await confirmAction({
      title: t("webhooks.delete_title"), text: t("webhooks.delete_text", { url }), confirm: t("webhooks.delete"),
      action: () => api.deleteWebhook(id),
    });
    if (isDeleted) reload();
  } } }, icon("trash"), element("span", {}, t("webhooks.delete")));
  const isActive = webhook.status === "active";
  const deliveries = loaded(() => api.listDeliveries(id), deliveryList);
  const again = button({ class: "button button-quiet" }, icon("refresh"), element("span", {}, t("deliveries.reload")));
  again.addEventListener("click", whileBusy(again, () => deliveries.reload()));
  return {
    deliveries,
    node: element("article", { class: "card" },
      element("header", { class: "card-head" },
        element("h2", { class: "card-url" }, visibleName(url)),
        pill(isActive ? (webhook.failure_count > 0 ? "warn" : "good") : "danger", t(isActive ? "webhooks.active" : "webhooks.disabled")),
        element("div", { class: "actions" }, rotate, remove)),
      element("p", { class: "card-status" },
        isActive ? (webhook.failure_count > 0 ? t("webhooks.failures", { count: webhook.failure_count }) : t(webhook.last_triggered_at ? "webhooks.well" : "webhooks.waiting")) : t("webhooks.disabled_text"), " ",
        webhook.last_triggered_at ? t("webhooks.last", { time: fullTime(webhook.last_triggered_at) }) : t("webhooks.never")),
      element("section", { class: "deliveries" },
        element("header", { class: "list-header" }, element("h3", {}, t("deliveries.title")), again), deliveries.node)),
  };
}

function deliveryList(deliveries) {
  if (deliveries.length === 0) return element("p", { class: "note" }, t("deliveries.empty"));
  const rows = deliveries.map((delivery, at) => element("tr", { hidden: at >= SHOWN_FIRST, class: delivery.error === null ? "" : "is-failed" },
    element("td", {}, element("time", { datetime: delivery.created_at }, fullTime(delivery.created_at))),
    element("td", {}, icon(delivery.error === null ? "check" : "warning"), " ", deliveryResult(delivery)),
    element("td", { class: "number" }, String(delivery.attempt)),
    element("td", { class: "number" }, milliseconds(delivery.duration_ms)),
    element("td", {}, element("code", {}, delivery.event_id))));
  const more = deliveries.length > SHOWN_FIRST && button({ class: "button", on: { click: () => {
    rows.forEach((row) => {
      row.hidden = false;
    });
    rows[SHOWN_FIRST].tabIndex = -1;
    rows[SHOWN_FIRST].focus();
    more.remove();
  } } }, t("list.more"));
  return [
    deliveryChart(deliveries),
    element("div", { class: "table-scroll", tabindex: "0", role: "group", "aria-label": t("deliveries.title") },
      element("table", {},
        element("caption", { class: "visually-hidden" }, t("deliveries.title")),
        element("thead", {}, element("tr", {}, ["time", "outcome", "attempt", "duration", "event"].map((column) =>
          element("th", { scope: "col", class: column === "attempt" || column === "duration" ? "number" : "" }, t(`deliveries.${column}`))))),
        element("tbody", {}, rows))),
    more,
  ];
}

const codeBlock = (code, label) =>
  element("div", { class: "code-block" }, copyButton(code, { label: t("webhooks.copy_code", { label }) }),
    element("pre", { tabindex: "0", role: "group", "aria-label": label }, element("code", {}, code)));

const receiverGuide = () =>
  element("section", { class: "card guide" },
    element("h2", {}, t("webhooks.guide")),
    element("p", {}, t("webhooks.guide_text")),
    element("h3", {}, t("webhooks.payload")),
    codeBlock(PAYLOAD, t("webhooks.payload")),
    element("h3", {}, t("webhooks.verify")),
    element("p", {}, t("webhooks.verify_text")),
    tabView({
      label: t("webhooks.languages"),
      selected: SAMPLES[0].key,
      tabs: SAMPLES.map(({ key, label, code }) => ({ key, label, render: () => codeBlock(code, label) })),
    }));
