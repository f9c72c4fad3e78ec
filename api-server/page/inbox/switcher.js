// The open mailboxes, with what is unread in each.

import { button, element, hiddenText } from "../dom/element.js";
import { icon } from "../dom/icons.js";
import { t } from "../text/text.js";

export function switcher(mailboxes, { onNew }) {
  const items = new Map();
  const list = element("ul", { class: "switcher-list" });
  const add = button({ class: "button switcher-new", "aria-label": t("switcher.new"), on: { click: onNew } }, icon("plus"), element("span", {}, t("switcher.new")));
  const node = element("nav", { class: "switcher", "aria-label": t("switcher.label") }, list, add);

  const make = (mailbox) => {
    const [local, domain] = mailbox.address.split("@");
    const count = element("span", { class: "count", hidden: true });
    const face = button({ class: "switcher-item", title: mailbox.address, on: { click: () => mailboxes.choose(mailbox) } },
      element("span", { class: "switcher-address" }, element("span", {}, local), element("span", { class: "muted" }, `@${domain}`)), count);
    let shown = -1;
    return {
      mailbox,
      item: element("li", {}, face),
      update() {
        const { unread } = mailbox;
        face.toggleAttribute("data-refused", mailbox.state === "refused");
        if (mailboxes.current === mailbox) face.setAttribute("aria-current", "true");
        else face.removeAttribute("aria-current");
        if (unread === shown) return;
        shown = unread;
        count.hidden = unread === 0;
        count.replaceChildren(String(unread), hiddenText(` ${t("list.unread")}`));
      },
    };
  };

  let current = null;
  const update = () => {
    node.hidden = mailboxes.all.length === 0;
    add.disabled = mailboxes.isFull;
    for (const [id, entry] of items) {
      if (mailboxes.all.includes(entry.mailbox)) continue;
      entry.item.remove();
      items.delete(id);
    }
    mailboxes.all.forEach((mailbox, at) => {
      if (!items.has(mailbox.id)) items.set(mailbox.id, make(mailbox));
      const entry = items.get(mailbox.id);
      if (list.children[at] !== entry.item) list.insertBefore(entry.item, list.children[at] ?? null);
      entry.update();
    });
    if (mailboxes.current === current) return;
    current = mailboxes.current;
    items.get(current?.id)?.item.scrollIntoView({ block: "nearest", inline: "nearest" });
  };
  return { node, update };
}
