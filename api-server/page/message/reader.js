// One message: who it is from, its views, its attachments, and what to do with it.

import { everySecond } from "../dom/clock.js";
import { button, element, hiddenText } from "../dom/element.js";
import { icon } from "../dom/icons.js";
import { emptyState, problem, skeleton } from "../dom/placeholder.js";
import { tabView } from "../dom/tabs.js";
import { isAborted } from "../http/request.js";
import { bytes, duration, fullTime } from "../text/format.js";
import { addressForms } from "../text/host_name.js";
import { t } from "../text/text.js";
import { hasHidden, visibleName } from "../text/visible.js";
import { attachmentList } from "./attachments.js";
import { authorMark } from "./author_mark.js";
import { htmlView } from "./html_view.js";
import { claimsOtherAddress, parseFrom } from "./sender.js";
import { downloadSource, headersView, sourceView } from "./source_view.js";
import { textView } from "./text_view.js";

export class MessageReader {
  #request = null;
  #id = null;

  /** `onOpened(message)` when it is read, `onGone(id)` when it is not there, `onDelete(id)`, `backHref`. */
  constructor({ onOpened = () => {}, onGone = () => {}, onDelete, backHref, idle }) {
    Object.assign(this, { onOpened, onGone, onDelete, backHref, idle });
    this.node = element("section", { class: "reader", "aria-label": t("message.region") });
    this.close();
  }

  close() {
    this.#request?.abort();
    this.#id = null;
    this.node.replaceChildren(this.idle());
  }

  async open(api, id) {
    if (this.#id === id) return;
    this.#request?.abort();
    const request = new AbortController();
    this.#request = request;
    this.#id = id;
    this.node.replaceChildren(this.#toolbar(null), skeleton(1, "head"), skeleton(6, "line"));
    try {
      const message = await api.message(id, request.signal);
      if (request.signal.aborted) return;
      this.#show(api, message, request.signal);
      this.onOpened(message);
    } catch (error) {
      if (isAborted(error) || request.signal.aborted) return;
      this.#fail(api, id, error);
    }
  }

  #fail(api, id, error) {
    const isGone = error.code === "not_found" || error.code === "email_expired";
    const heading = element("div", { tabindex: "-1", class: "reader-problem" }, isGone
      ? emptyState({ name: "clock", title: t(`errors.${error.code}.title`), text: t("message.gone"), level: "h2" })
      : problem(error, () => {
        this.#id = null;
        return this.open(api, id);
      }));
    this.node.replaceChildren(this.#toolbar(null), heading);
    heading.focus();
    if (isGone) this.onGone(id);
  }

  /** Shows why a message is not opened. */
  explain(id, reason) {
    this.#request?.abort();
    this.#id = id;
    const content = element("div", { tabindex: "-1", class: "reader-problem" }, reason);
    this.node.replaceChildren(this.#toolbar(null), content);
    content.focus();
  }

  #toolbar(message, api) {
    return element("div", { class: "reader-toolbar" },
      element("a", { class: "button button-quiet back-link", href: this.backHref }, icon("back"), t("message.back")),
      element("span", { class: "spacer" }),
      message && downloadSource(api, message),
      message && button({ class: "button button-quiet", "aria-label": t("message.delete_label"), on: { click: () => this.onDelete(message.id) } },
        icon("trash"), element("span", {}, t("message.delete"))));
  }

  #show(api, message, signal) {
    const subject = element("h2", { class: "reader-subject", tabindex: "-1" },
      message.subject ? visibleName(message.subject) : t("message.no_subject"));
    const author = parseFrom(message.from, message.from_email || message.sender);
    const hasHtml = /\S/.test(message.html_body);
    const views = [
      hasHtml && { key: "html", label: t("message.html"), render: () => htmlView(api, message, signal) },
      { key: "text", label: t("message.text"), render: () => textView(message.text_body) },
      { key: "headers", label: t("message.headers"), render: () => headersView(message) },
      { key: "source", label: t("message.source"), render: () => sourceView(api, message) },
    ].filter(Boolean);
    this.node.replaceChildren(...[
      this.#toolbar(message, api),
      element("header", { class: "reader-head" }, authorMark(author.name || author.address), subject, envelope(message, author), warnings(message, author)),
      attachmentList(api, message),
      tabView({ label: t("message.views"), tabs: views, selected: hasHtml ? "html" : "text" }),
    ].filter(Boolean));
    subject.focus({ preventScroll: true });
    this.node.scrollTop = 0;
    // On a narrow screen the message takes the place of the list, which may have been scrolled far down.
    if (this.node.getBoundingClientRect().top < 0) this.node.scrollIntoView();
  }
}

function addressLine(label, name, address) {
  const forms = addressForms(address);
  return element("div", { class: "envelope-line" }, element("dt", {}, label), element("dd", {},
    name && element("strong", {}, visibleName(name)), " ",
    element("span", { class: "address" }, visibleName(address || t("message.no_sender"))),
    forms && element("span", { class: "ascii-host", title: t("links.looks_like") }, forms.ascii === address.split("@").pop() ? forms.unicode : forms.ascii)));
}

function envelope(message, author) {
  const left = element("span", { class: "countdown" });
  const expires = Date.parse(message.expires_at);
  const line = element("div", { class: "envelope-line" },
    element("dt", {}, t("message.expires")), element("dd", {}, left, " ", element("span", { class: "muted" }, fullTime(message.expires_at))));
  everySecond(line, (now) => {
    left.textContent = expires > now ? t("message.expires_in", { time: duration(expires - now) }) : t("message.expired");
    left.classList.toggle("countdown-soon", expires - now < 5 * 60_000);
  });
  return element("dl", { class: "envelope" },
    addressLine(t("message.from"), author.name, author.address),
    message.sender && message.sender.toLowerCase() !== author.address.toLowerCase() && addressLine(t("message.sender"), "", message.sender),
    addressLine(t("message.to"), "", message.address),
    element("div", { class: "envelope-line" }, element("dt", {}, t("message.received")), element("dd", {},
      element("time", { datetime: message.created_at }, fullTime(message.created_at)),
      element("span", { class: "muted" }, ` · ${bytes(message.size)}`))),
    line);
}

function warnings(message, author) {
  const found = [
    claimsOtherAddress(author) && t("message.warn_other_address"),
    (hasHidden(message.subject) || hasHidden(author.name) || hasHidden(author.address)) && t("message.warn_hidden"),
    addressForms(author.address) && t("message.warn_homograph"),
  ].filter(Boolean);
  if (found.length === 0) return null;
  return element("div", { class: "warning-box" }, icon("warning"),
    element("div", {}, hiddenText(`${t("message.caution")} `), found.map((text) => element("p", {}, text))));
}
