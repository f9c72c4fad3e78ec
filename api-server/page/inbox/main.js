// The inbox: `/`. The fragment says which message of the chosen mailbox is open: `#/message/<id>`.

import { announce } from "../dom/announce.js";
import { connectionState } from "../dom/connection_state.js";
import { copyText } from "../dom/copy_button.js";
import { openDialog } from "../dom/dialog.js";
import { element } from "../dom/element.js";
import { helpButton, pageFrame } from "../dom/page_frame.js";
import { problem, skeleton } from "../dom/placeholder.js";
import { shortcuts } from "../dom/shortcuts.js";
import { toast } from "../dom/toast.js";
import { listDomains, readConfig } from "../http/public_api.js";
import { authorLine } from "../message/sender.js";
import { t } from "../text/text.js";
import { visibleString } from "../text/visible.js";
import { Mailboxes } from "./mailboxes.js";
import { MailboxView } from "./mailbox_view.js";
import { newAddress } from "./new_address.js";
import { notificationSwitch, notifyOf } from "./notifications.js";
import { switcher } from "./switcher.js";
import { welcome } from "./welcome.js";

/** Domains, rules of names and how long mail is kept. The latter two are not needed to go on. */
async function readService() {
  const [domains, config] = await Promise.all([listDomains(), readConfig().catch(() => null)]);
  return { domains, rules: config?.local_part_rules ?? null, retention: config ? 1000 * config.ttl_seconds : null };
}

let service = null;
const rememberService = () => (service ??= readService().catch((error) => {
  service = null;
  throw error;
}));

const mailboxes = new Mailboxes(async () => (await rememberService()).retention);
let view = null;

const state = connectionState(() => mailboxes.current?.socket ?? null);
const help = shortcuts([
  { keys: ["j"], text: t("shortcuts.next"), run: () => view?.step(1) ?? false },
  { keys: ["k"], text: t("shortcuts.previous"), run: () => view?.step(-1) ?? false },
  { keys: ["#", "Delete"], text: t("shortcuts.delete"), run: () => view?.delete() ?? false },
  { keys: ["z"], text: t("shortcuts.undo"), run: () => view?.undo() },
  { keys: ["Escape"], text: t("shortcuts.close"), run: () => {
    location.hash = "#/";
  } },
  { keys: ["/"], text: t("shortcuts.search"), run: () => view ? view.search.input.focus() : false },
  { keys: ["c"], text: t("shortcuts.copy"), run: () => copyAddress() },
  { keys: ["n"], text: t("shortcuts.new"), run: () => askForAddress() },
]);
const { main, header } = pageFrame({
  home: "/",
  tools: [state.node, notificationSwitch(), helpButton(help.showHelp)].filter(Boolean),
  links: [element("a", { href: "/dashboard" }, t("frame.dashboard"))],
});
const addresses = switcher(mailboxes, { onNew: () => askForAddress() });
const content = element("div", { class: "inbox" });
header.append(state.banner);
main.classList.add("inbox-main");
main.append(addresses.node, content);

function open(account) {
  document.querySelector("dialog[open]")?.close();
  location.hash = "#/";
  mailboxes.add(account);
  announce(t("inbox.opened", { address: account.address }));
  main.querySelector(".copy-address")?.focus();
}

function askForAddress(address = "") {
  // Without a mailbox the page itself asks; one that is signed out has its place already.
  if (mailboxes.all.length === 0 || (mailboxes.isFull && !address)) return false;
  const body = element("div", {}, skeleton(3, "line"));
  openDialog({ title: address ? t("new.sign_in") : t("switcher.new"), content: body });
  const load = async () => {
    try {
      body.replaceChildren(newAddress({ service: await rememberService(), onOpened: open, address }));
      body.querySelector(address ? "input[type=password]" : "button")?.focus();
    } catch (error) {
      body.replaceChildren(problem(error, load));
    }
  };
  load();
  return true;
}

async function copyAddress() {
  if (!mailboxes.current) return;
  toast(await copyText(mailboxes.current.address) ? t("copy.done") : t("copy.failed"), { seconds: 3 });
}

const openId = () => /^#\/message\/([\w-]+)$/.exec(location.hash)?.[1] ?? null;

function showTitle() {
  const { current, unread } = mailboxes;
  const name = current ? t("inbox.title", { address: current.address }) : t("welcome.page_title");
  const title = unread > 0 ? `(${unread}) ${name}` : name;
  if (document.title !== title) document.title = title;
}

function showChosen() {
  const { current } = mailboxes;
  if (!view || view.mailbox !== current) {
    view?.close();
    view = null;
    if (current) {
      view = new MailboxView(current, {
        onForget: () => {
          mailboxes.forget(current);
          // What had the focus is gone with the mailbox.
          content.querySelector(".copy-address, .welcome h1").focus();
        },
        onSignIn: () => askForAddress(current.address),
      });
      content.replaceChildren(view.node);
      view.show(openId());
    } else content.replaceChildren(welcome({ readService: rememberService, onOpened: open }));
  }
  showState();
}

function showState() {
  addresses.update();
  view?.update();
  state.update();
  showTitle();
}

// Many events may come at once, as when a page of mail is read.
let isScheduled = false;
mailboxes.addEventListener("state", () => {
  if (isScheduled) return;
  isScheduled = true;
  // A timer, since frames do not come while the page is hidden, where the title is all that is seen.
  setTimeout(() => {
    isScheduled = false;
    showState();
  }, 50);
});
let chosen = null;
mailboxes.addEventListener("change", () => {
  // A message that is open belongs to the mailbox that was chosen before.
  if (chosen !== null && mailboxes.current?.id !== chosen && openId()) history.replaceState(null, "", "#/");
  chosen = mailboxes.current?.id ?? null;
  showChosen();
});
const arrived = [];
mailboxes.addEventListener("mail", ({ detail }) => {
  arrived.push({ ...detail, isUnseen: document.hidden });
  if (arrived.length === 1) setTimeout(() => tell(arrived.splice(0)), 100);
});

/** Says what arrived. After an absence that is much at once, and is counted. */
function tell(arrivals) {
  if (arrivals.length > 2) announce(t("inbox.arrived_many", { count: arrivals.length }));
  else {
    for (const { message } of arrivals) {
      announce(t("inbox.arrived", {
        from: visibleString(authorLine(message)) || t("message.no_sender"),
        subject: visibleString(message.subject) || t("message.no_subject"),
      }));
    }
  }
  for (const { mailbox, message } of arrivals.filter(({ isUnseen }) => isUnseen).slice(0, 3)) {
    notifyOf(message, mailbox.address, () => {
      mailboxes.choose(mailbox);
      location.hash = `#/message/${message.id}`;
    });
  }
}

addEventListener("hashchange", () => view?.show(openId()));
mailboxes.open();
