// Custom domains: the records to set, what is right and what is wrong now, and the time that is left.

import { announce } from "../dom/announce.js";
import { whileBusy } from "../dom/busy.js";
import { everySecond } from "../dom/clock.js";
import { copyButton } from "../dom/copy_button.js";
import { confirmAction, openDialog } from "../dom/dialog.js";
import { button, element } from "../dom/element.js";
import { field } from "../dom/field.js";
import { form, waitAsTold } from "../dom/form.js";
import { icon } from "../dom/icons.js";
import { emptyState } from "../dom/placeholder.js";
import { toast } from "../dom/toast.js";
import * as api from "../http/pro_api.js";
import { errorLine } from "../text/errors.js";
import { duration, fullTime } from "../text/format.js";
import { hostForms } from "../text/host_name.js";
import { has, t } from "../text/text.js";
import { loaded, pill, sectionHead } from "./section.js";

const TONES = { verified: "good", pending: "warn", failed: "danger" };

export function domainsSection() {
  const add = () => button({ class: "button button-primary", "aria-haspopup": "dialog", on: { click: () => askToAdd(() => list.reload()) } },
    icon("plus"), element("span", {}, t("domains.add")));
  const list = loaded(api.listDomains, (domains) => domains.length === 0
    ? emptyState({ name: "globe", title: t("domains.empty"), text: t("domains.empty_text"), actions: [add()], level: "h2" })
    : domains.map((domain) => domainCard(domain, () => list.reload())));
  return {
    title: t("domains.title"),
    node: element("div", {}, sectionHead({ title: t("domains.title"), lead: t("domains.lead"), actions: [add()] }), list.node),
  };
}

function askToAdd(reload) {
  const name = field({
    label: t("domains.name"), hint: t("domains.name_hint"),
    input: element("input", { autocomplete: "off", autocapitalize: "none", spellcheck: "false", inputmode: "url", placeholder: "mail.example.com", required: true }),
  });
  const dialog = openDialog({
    title: t("domains.add"),
    size: "small",
    content: form({
      label: t("domains.add"),
      fields: [name],
      errorFields: { invalid_domain: name, domain_already_exists: name },
      action: async () => {
        const domain = await api.addDomain(name.value.trim());
        dialog.close();
        toast(t("domains.added", { domain: domain.domain }));
        reload();
      },
    }),
  });
}

function domainCard(initial, reload) {
  const card = element("article", { class: "card" });
  const render = (domain, found = null) => {
    const { id } = domain;
    const forms = hostForms(domain.domain);
    const check = button({ class: "button", "aria-label": t("domains.check_label", { domain: domain.domain }) }, icon("refresh"), element("span", {}, t("domains.check")));
    check.addEventListener("click", whileBusy(check, async () => {
      try {
        const checked = await api.checkDomain(id);
        render(checked, checked);
        card.querySelector("button")?.focus();
        announce(t("domains.checked", { domain: checked.domain, status: t(`domains.status.${checked.verify_status}`) }));
      } catch (error) {
        toast(errorLine(error), { tone: "danger" });
        waitAsTold(check, error);
      }
    }));
    const remove = domain.managed_by === "kubernetes"
      ? element("span", { class: "note" }, t("managed.kubernetes"))
      : button({ class: "button button-danger-quiet", "aria-label": t("domains.delete_label", { domain: domain.domain }), on: { click: async () => {
        const isDeleted = await confirmAction({
          title: t("domains.delete_title", { domain: domain.domain }), text: t("domains.delete_text"), confirm: t("domains.delete"),
          action: () => api.deleteDomain(id),
        });
        if (isDeleted) reload();
      } } }, icon("trash"), element("span", {}, t("domains.delete")));
    card.replaceChildren(
      element("header", { class: "card-head" },
        element("h2", {}, forms.unicode, forms.differ && element("span", { class: "ascii-host" }, forms.ascii)),
        pill(TONES[domain.verify_status] ?? "neutral", has(`domains.status.${domain.verify_status}`) ? t(`domains.status.${domain.verify_status}`) : domain.verify_status),
        element("div", { class: "actions" }, check, remove)),
      statusLine(domain),
      records(domain, found));
  };
  render(initial);
  return card;
}

function statusLine(domain) {
  const line = element("p", { class: "card-status" });
  if (domain.verify_status === "pending") {
    const deadline = Date.parse(domain.deadline);
    everySecond(line, (now) => {
      line.textContent = deadline > now ? t("domains.pending", { time: duration(deadline - now) }) : t("domains.pending_over");
    });
  } else if (domain.verify_status === "failed") {
    line.textContent = t(has(`domains.reason.${domain.failure_reason}`) ? `domains.reason.${domain.failure_reason}` : "domains.reason.other");
  } else if (domain.verified_at) line.textContent = t("domains.verified", { time: fullTime(domain.verified_at) });
  return line;
}

/** `found` is what a check saw just now; without it, what the last check saw. */
function records(domain, found) {
  const now = { TXT: found?.txt_record, MX: found?.mx_record };
  return element("ul", { class: "records", "aria-label": t("domains.records", { domain: domain.domain }) }, domain.dns_records.map((record) => {
    const isRight = now[record.type] ?? record.ok;
    const part = (label, value) => element("div", { class: "record-part" },
      element("dt", {}, label),
      element("dd", {}, element("code", {}, value), copyButton(value, { label: t("domains.copy", { what: label, type: record.type }) })));
    return element("li", { class: "record", "data-right": String(isRight) },
      element("div", { class: "record-head" },
        element("strong", {}, record.type),
        element("span", { class: "record-state" }, icon(isRight ? "check" : "warning"), t(isRight ? "domains.right" : `domains.wrong.${record.type === "MX" ? "mx" : "txt"}`))),
      element("dl", {}, part(t("domains.host"), record.host), part(t("domains.value"), record.value),
        record.priority !== null && record.priority !== undefined && part(t("domains.priority"), String(record.priority))));
  }));
}
