// The tenant's mailboxes.

import { confirmAction, openDialog } from "../dom/dialog.js";
import { copyButton } from "../dom/copy_button.js";
import { button, element } from "../dom/element.js";
import { field, select } from "../dom/field.js";
import { form } from "../dom/form.js";
import { icon } from "../dom/icons.js";
import { meter } from "../dom/meter.js";
import { emptyState, problem, skeleton } from "../dom/placeholder.js";
import { toast } from "../dom/toast.js";
import * as api from "../http/pro_api.js";
import { listDomains as listSystemDomains } from "../http/public_api.js";
import { randomLocalPart, randomPassword } from "../inbox/random_name.js";
import { MessageFeed } from "../message/feed.js";
import { bytes, fullDate } from "../text/format.js";
import { folded, t } from "../text/text.js";
import { MailPanes } from "./mail_panes.js";
import { showSecret } from "./secret_dialog.js";
import { loaded, sectionHead } from "./section.js";

const STEP = 100;

export function mailboxesSection(context) {
  const create = () => button({ class: "button button-primary", "aria-haspopup": "dialog", on: { click: () => askToCreate(() => list.reload()) } },
    icon("plus"), element("span", {}, t("mailboxes.create")));
  const list = loaded(api.listMailboxes, (mailboxes) => mailboxes.length === 0
    ? emptyState({ title: t("mailboxes.empty"), text: t("mailboxes.empty_text"), actions: [create()], level: "h2" })
    : mailboxList(mailboxes, () => list.reload()));
  const overview = element("div", {}, sectionHead({ title: t("mailboxes.title"), lead: t("mailboxes.lead"), actions: [create()] }), list.node);
  const node = element("div", {}, overview);
  let opened = null;
  const section = {
    title: t("mailboxes.title"),
    node,
    get panes() {
      return opened?.panes ?? null;
    },
    /** `#/mailboxes/<id>` is the mail of one, `#/mailboxes/<id>/<message>` a message of it. */
    show([id, message]) {
      if (opened && opened.id !== id) {
        opened.close();
        opened = null;
        if (!id) list.reload();
      }
      if (!id) node.replaceChildren(overview);
      else {
        opened ??= mailboxMail(id, context);
        if (!opened.node.isConnected) {
          node.replaceChildren(opened.node);
          if (!message) opened.node.querySelector("h1").focus();
        }
        opened.panes.show(message ?? null);
      }
    },
    close: () => opened?.close(),
  };
  return section;
}

function mailboxList(mailboxes, reload) {
  const rows = element("ul", { class: "rows" });
  const more = button({ class: "button" }, t("list.more"));
  const filter = element("input", { type: "search", class: "search-input", "aria-label": t("mailboxes.filter"), placeholder: t("mailboxes.filter") });
  let [limit, matching] = [STEP, mailboxes];
  const render = () => {
    rows.replaceChildren(...matching.slice(0, limit).map((mailbox) => row(mailbox, reload)));
    if (matching.length === 0) rows.append(element("li", { class: "note" }, t("list.no_match")));
    more.hidden = matching.length <= limit;
  };
  more.addEventListener("click", () => {
    limit += STEP;
    render();
  });
  filter.addEventListener("input", () => {
    const query = folded(filter.value.trim());
    matching = mailboxes.filter(({ address }) => folded(address).includes(query));
    limit = STEP;
    render();
  });
  render();
  return [
    mailboxes.length > 8 && element("div", { class: "search", role: "search" }, icon("search"), filter),
    element("p", { class: "muted" }, t("mailboxes.count", { count: mailboxes.length })),
    rows, more,
  ];
}

function row(mailbox, reload) {
  const { address, id } = mailbox;
  const action = (name, label, text, run, kind = "button-quiet") =>
    button({ class: `button ${kind}`, "aria-label": label, on: { click: run } }, icon(name), element("span", {}, text));
  return element("li", { class: "row" },
    element("div", { class: "row-main" },
      element("h2", { class: "row-title" }, element("a", { href: `#/mailboxes/${id}` }, address)),
      element("p", { class: "muted" }, t("mailboxes.created", { date: fullDate(mailbox.created_at) }))),
    meter({
      label: t("card.storage"), value: mailbox.used, limit: mailbox.quota,
      text: t("card.storage_of", { used: bytes(mailbox.used), quota: bytes(mailbox.quota) }),
    }),
    element("div", { class: "actions" },
      copyButton(address, { label: t("card.copy_label", { address }) }),
      action("key", t("mailboxes.reset_label", { address }), t("mailboxes.reset"), () => askToReset(mailbox)),
      action("trash", t("mailboxes.delete_label", { address }), t("mailboxes.delete"), async () => {
        const isDeleted = await confirmAction({
          title: t("card.delete_title"), text: t("card.delete_text", { address }), confirm: t("card.delete"),
          action: () => api.deleteMailbox(id),
        });
        if (isDeleted) reload();
      }, "button-danger-quiet")));
}

function passwordField() {
  const made = field({
    label: t("new.password"), hint: t("new.password_hint"),
    input: element("input", { type: "password", autocomplete: "new-password", maxlength: 128 }),
  });
  return made;
}

async function askToCreate(reload) {
  const body = element("div", {}, skeleton(3, "line"));
  const dialog = openDialog({ title: t("mailboxes.create"), content: body });
  const load = async () => {
    try {
      const [system, own] = await Promise.all([listSystemDomains(), api.listDomains()]);
      const names = [...own.filter((domain) => domain.verify_status === "verified"), ...system].map(({ domain }) => domain);
      const name = field({
        label: t("new.name"), hint: t("new.name_hint"),
        input: element("input", { autocomplete: "off", autocapitalize: "none", spellcheck: "false", maxlength: 64, required: true, value: randomLocalPart() }),
      });
      const domain = field({ label: t("new.domain"), input: select({}, [...new Set(names)].map((text) => [text, text]), names[0]) });
      const password = passwordField();
      const create = form({
        label: t("new.create"),
        fields: [name, domain, password],
        errorFields: { address_taken: name, invalid_address: name, password_too_short: password, password_too_long: password },
        action: async () => {
          const secret = password.value || randomPassword();
          const address = `${name.value.trim().toLowerCase()}@${domain.value}`;
          await api.createMailbox(address, secret);
          dialog.close();
          reload();
          if (password.value) toast(t("mailboxes.made", { address }));
          else await showSecret({ title: t("mailboxes.made", { address }), text: t("mailboxes.made_text"), label: t("card.password"), secret });
        },
      });
      body.replaceChildren(create);
      name.input.focus();
      name.input.select();
    } catch (error) {
      body.replaceChildren(problem(error, load));
    }
  };
  await load();
}

function askToReset({ id, address }) {
  const password = passwordField();
  const reset = form({
    label: t("mailboxes.reset"),
    fields: [password],
    errorFields: { password_too_short: password, password_too_long: password },
    action: async () => {
      const secret = password.value || randomPassword();
      await api.resetPassword(id, secret);
      dialog.close();
      if (password.value) toast(t("mailboxes.was_reset", { address }));
      else await showSecret({ title: t("mailboxes.was_reset", { address }), text: t("mailboxes.made_text"), label: t("card.password"), secret });
    },
  });
  const dialog = openDialog({
    title: t("mailboxes.reset"),
    size: "small",
    content: [element("p", {}, t("mailboxes.reset_text", { address })), reset],
  });
}

/** The mail of one mailbox. */
function mailboxMail(id, { stream, mailboxAddress }) {
  const source = api.mailboxMessages(id);
  const feed = new MessageFeed(source);
  const href = `#/mailboxes/${id}`;
  const panes = new MailPanes({
    feed, api: source, href, showsRecipient: false,
    empty: () => emptyState({ title: t("inbox.empty"), text: t("mailboxes.no_mail") }),
  });
  const lifetime = new AbortController();
  const refresh = () => feed.refreshUntilRead(lifetime.signal).catch(() => {});
  const title = element("h1", { tabindex: "-1" }, t("mailboxes.mail"));
  mailboxAddress(id).then((address) => {
    if (address) title.textContent = address;
  }).catch(() => {});
  // The stream says that something came to the tenant; the list of the mailbox says what is its own.
  stream.addEventListener("mail", refresh, { signal: lifetime.signal });
  stream.addEventListener("state", () => {
    if (stream.state === "live") refresh();
    else feed.markGap();
  }, { signal: lifetime.signal });
  refresh();
  return {
    id,
    panes,
    node: element("div", { class: "mail-section" },
      element("header", { class: "section-head" }, element("div", {},
        element("a", { class: "button button-quiet", href: "#/mailboxes" }, icon("back"), t("mailboxes.title")), title)),
      panes.node),
    close() {
      lifetime.abort();
      panes.close();
    },
  };
}
