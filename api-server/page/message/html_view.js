// The HTML of a mail, in a frame of an opaque origin: its document is at a URL of its own, which works once.

import { whileBusy } from "../dom/busy.js";
import { announce } from "../dom/announce.js";
import { button, element } from "../dom/element.js";
import { icon } from "../dom/icons.js";
import { problem, skeleton } from "../dom/placeholder.js";
import { isAborted } from "../http/request.js";
import { hostForms } from "../text/host_name.js";
import { t } from "../text/text.js";
import { visibleString } from "../text/visible.js";
import { linkList } from "./link_list.js";

const NAMED = 3;
const LISTED = 100;

/** Where a document is shown from; nothing but a path of this origin. */
function documentUrl(text) {
  const url = new URL(text, location.href);
  if (url.origin !== location.origin || !/^\/(pro\/api\/)?document\/[\w-]+$/.test(url.pathname)) throw new TypeError("not a document");
  return url.href;
}

/** Hosts as they may be shown: with the name that DNS is asked for where it looks different. */
const hostName = (host) => {
  const { ascii, unicode, differ } = hostForms(host);
  return visibleString(differ ? `${unicode} (${ascii})` : host);
};

function hostNames(hosts) {
  const named = hosts.slice(0, NAMED).map(hostName).join(", ");
  return hosts.length > NAMED ? t("html.hosts_more", { hosts: named, count: hosts.length - NAMED }) : named;
}

export function htmlView(api, message, signal) {
  const bar = element("div", { class: "remote-bar", hidden: true });
  const notes = element("div");
  const frameBox = element("div", { class: "frame-box" }, skeleton(6, "line"));
  const links = element("div");

  const show = async (remote) => {
    try {
      const made = await api.document(message.id, remote, signal);
      showBar(made.remote_hosts ?? [], remote);
      notes.replaceChildren(made.truncated ? element("p", { class: "note" }, t("html.truncated")) : "");
      links.replaceChildren(linkList(made.links ?? []) ?? "");
      frameBox.replaceChildren(element("iframe", {
        class: "mail-frame",
        title: t("html.frame_title", { subject: visibleString(message.subject) }),
        // Set before `src`: the document is never loaded without it.
        sandbox: "allow-popups allow-popups-to-escape-sandbox",
        referrerpolicy: "no-referrer",
        src: documentUrl(made.url),
      }));
    } catch (error) {
      if (isAborted(error)) return;
      frameBox.replaceChildren(problem(error, () => show(remote)));
    }
  };

  const showBar = (hosts, remote) => {
    bar.hidden = hosts.length === 0;
    if (hosts.length === 0) return;
    const load = !remote && button({ class: "button", "aria-label": t("html.show_images_from", { hosts: hostNames(hosts) }) }, icon("image"), t("html.show_images"));
    if (load) {
      load.addEventListener("click", whileBusy(load, async () => {
        await show(true);
        announce(t("html.images_shown"));
        frameBox.querySelector("iframe")?.focus();
      }));
    }
    const all = hosts.length > NAMED && element("details", {},
      element("summary", {}, t("html.all_hosts", { count: hosts.length })),
      element("ul", {}, hosts.slice(0, LISTED).map((host) => element("li", {}, hostName(host)))));
    bar.replaceChildren(...[
      icon(remote ? "image" : "shield"),
      element("div", {},
        element("p", {}, remote ? t("html.loaded", { hosts: hostNames(hosts) }) : t("html.blocked", { hosts: hostNames(hosts) })),
        !remote && element("p", { class: "note" }, t("html.blocked_why")), all),
      load,
    ].filter(Boolean));
  };

  show(false);
  return [bar, notes, frameBox, links];
}
