// The dashboard: `/dashboard`. The fragment says which section is open, and what in it: `#/mailboxes/<id>/<message>`.

import { announce } from "../dom/announce.js";
import { whileBusy } from "../dom/busy.js";
import { connectionState } from "../dom/connection_state.js";
import { button, element } from "../dom/element.js";
import { icon } from "../dom/icons.js";
import { helpButton, pageFrame } from "../dom/page_frame.js";
import { problem, skeleton } from "../dom/placeholder.js";
import { shortcuts } from "../dom/shortcuts.js";
import { toast } from "../dom/toast.js";
import { EventStream } from "../http/event_stream.js";
import { everything, listMailboxes } from "../http/pro_api.js";
import { MessageFeed } from "../message/feed.js";
import { errorLine } from "../text/errors.js";
import { t } from "../text/text.js";
import { visibleName, visibleString } from "../text/visible.js";
import { domainsSection } from "./domains.js";
import { everythingSection } from "./everything.js";
import { mailboxesSection } from "./mailboxes.js";
import { endPage, readSession, signInByLink, signOut, takeCode, takeReason, watch } from "./session.js";
import { signInView } from "./sign_in.js";
import { tokensSection } from "./tokens.js";
import { usageSection } from "./usage.js";
import { webhooksSection } from "./webhooks.js";

const SECTIONS = {
  everything: { name: "stack", make: everythingSection },
  mailboxes: { name: "inbox", make: mailboxesSection },
  domains: { name: "globe", make: domainsSection },
  webhooks: { name: "hook", make: webhooksSection },
  tokens: { name: "key", make: tokensSection },
  usage: { name: "gauge", make: usageSection },
};
// A push has the address of the author and not the name, which the list has.
const NAMES_AFTER = 400;

const reason = takeReason();
await begin(takeCode());

async function begin(code) {
  let linkError = null;
  if (code) {
    try {
      await signInByLink(code);
    } catch (error) {
      linkError = error;
    }
  }
  await enter(linkError);
}

/** Shows the dashboard where there is a session, and the sign-in where there is none. */
async function enter(linkError = null) {
  const frame = pageFrame({ home: "/dashboard", title: t("frame.dashboard"), links: [element("a", { href: "/" }, t("frame.inbox"))] });
  const heading = () => element("h1", { class: "visually-hidden" }, t("frame.dashboard"));
  frame.main.append(element("div", { class: "section" }, heading(), skeleton(4)));
  document.title = t("sign_in.page_title");
  try {
    const session = await readSession();
    // A link that was used before is no matter while there is a session.
    if (session) showDashboard(session);
    else {
      frame.main.replaceChildren(signInView({ reason, linkError, onSignedIn: () => enter() }));
      frame.main.querySelector(linkError || reason ? "h1" : "input").focus();
    }
  } catch (error) {
    frame.main.replaceChildren(element("div", { class: "section" }, heading(), problem(error, () => enter(linkError))));
  }
}

function showDashboard(session) {
  watch(session);
  const feed = new MessageFeed(everything);
  const stream = new EventStream({ onSessionEnd: endPage });
  const state = connectionState(() => stream);
  let section = null;

  const help = shortcuts([
    { keys: ["j"], text: t("shortcuts.next"), run: () => section?.panes?.step(1) ?? false },
    { keys: ["k"], text: t("shortcuts.previous"), run: () => section?.panes?.step(-1) ?? false },
    { keys: ["#", "Delete"], text: t("shortcuts.delete"), run: () => section?.panes?.delete() ?? false },
    { keys: ["z"], text: t("shortcuts.undo"), run: () => section?.panes?.undo() },
    { keys: ["Escape"], text: t("shortcuts.close"), run: () => {
      if (section?.panes) location.hash = section.panes.href;
    } },
    { keys: ["/"], text: t("shortcuts.search"), run: () => section?.panes ? section.panes.search.input.focus() : false },
    ...Object.keys(SECTIONS).map((key, at) => ({
      keys: [String(at + 1)], text: t("shortcuts.section", { section: t(`${key}.title`) }), run: () => {
        location.hash = `#/${key}`;
      },
    })),
  ]);

  // Narrow screens show the icon alone.
  const leave = button({ class: "button button-quiet", "aria-label": t("session.sign_out") }, icon("sign_out"), element("span", {}, t("session.sign_out")));
  leave.addEventListener("click", whileBusy(leave, async () => {
    try {
      await signOut();
    } catch (error) {
      // Not ended there is not signed out.
      if (error.status === 401 || error.status === 440) endPage("signed_out");
      else toast(errorLine(error), { tone: "danger" });
    }
  }));

  const tenant = session.name;
  const { main, header } = pageFrame({
    home: "#/everything",
    title: t("frame.dashboard"),
    tools: [
      state.node,
      tenant && element("span", { class: "tenant", title: t("session.tenant") }, visibleName(tenant)),
      helpButton(help.showHelp), leave,
    ].filter(Boolean),
    links: [element("a", { href: "/" }, t("frame.inbox"))],
  });
  header.append(state.banner);
  const links = new Map(Object.entries(SECTIONS).map(([key, { name }]) =>
    [key, element("a", { href: `#/${key}` }, icon(name), element("span", {}, t(`${key}.title`)))]));
  const content = element("div", { class: "section" });
  main.classList.add("dashboard");
  main.before(element("nav", { class: "section-nav", "aria-label": t("frame.sections") },
    element("ul", {}, [...links.values()].map((link) => element("li", {}, link)))));
  main.append(content);

  const addresses = new Map();
  const mailboxAddress = async (id) => {
    if (!addresses.has(id)) for (const mailbox of await listMailboxes()) addresses.set(mailbox.id, mailbox.address);
    return addresses.get(id);
  };

  let shown = null;
  const show = () => {
    const [key, ...rest] = location.hash.replace(/^#\//, "").split("/");
    // A message by its id alone is one of everything.
    const name = key === "message" ? "everything" : Object.hasOwn(SECTIONS, key) ? key : "everything";
    if (name !== shown) {
      section?.close?.();
      section = SECTIONS[name].make({ feed, stream, mailboxAddress });
      content.replaceChildren(section.node);
      for (const [other, link] of links) {
        if (other === name) link.setAttribute("aria-current", "page");
        else link.removeAttribute("aria-current");
      }
      // On a narrow screen the sections are a line that scrolls.
      links.get(name).scrollIntoView({ block: "nearest", inline: "center" });
      document.title = t("dashboard.page_title", { section: section.title });
      if (shown !== null) content.querySelector("h1")?.focus();
      shown = name;
    }
    content.dataset.view = (name === "everything" && rest[0]) || (name === "mailboxes" && rest[1]) ? "message" : "list";
    section.show?.(rest);
  };
  addEventListener("hashchange", show);

  let names = 0;
  // The page ends with the session, and nothing before it.
  const { signal } = new AbortController();
  const refresh = () => feed.refreshUntilRead(signal).catch(() => {});
  stream.addEventListener("state", () => {
    state.update();
    if (stream.state === "live") refresh();
    else feed.markGap();
  });
  stream.addEventListener("mail", ({ detail }) => {
    if (feed.push({ from: detail.from_email, ...detail })) {
      announce(t("everything.arrived", { address: detail.address, subject: visibleString(detail.subject) || t("message.no_subject") }));
    }
    clearTimeout(names);
    names = setTimeout(refresh, NAMES_AFTER);
  });
  show();
  refresh();
  stream.open();
}
