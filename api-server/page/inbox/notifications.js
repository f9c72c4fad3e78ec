// Desktop notifications, if one wants them, while the page is not in sight.

import { button } from "../dom/element.js";
import { icon } from "../dom/icons.js";
import { toast } from "../dom/toast.js";
import { authorLine } from "../message/sender.js";
import { load, save } from "../storage/settings.js";
import { t } from "../text/text.js";
import { visibleString } from "../text/visible.js";

const isSupported = "Notification" in window;
let isWanted = Boolean(load("notifications"));

const isOn = () => isSupported && isWanted && Notification.permission === "granted";

export function notificationSwitch() {
  if (!isSupported) return null;
  const node = button({ class: "icon-button", on: { click: () => toggle() } });
  const show = () => {
    node.replaceChildren(icon(isOn() ? "bell" : "bell_off"));
    node.setAttribute("aria-pressed", String(isOn()));
    node.setAttribute("aria-label", t("notify.label"));
    node.title = isOn() ? t("notify.on") : t("notify.off");
  };
  const toggle = async () => {
    const turnOn = !isOn();
    if (turnOn && Notification.permission !== "granted") await Notification.requestPermission();
    isWanted = turnOn;
    save("notifications", isWanted);
    show();
    if (turnOn && !isOn()) toast(t("notify.blocked"), { tone: "danger" });
    else toast(isOn() ? t("notify.on") : t("notify.off"));
  };
  show();
  return node;
}

/** Notifies of a message. `open()` is called when the notification is clicked. */
export function notifyOf(message, address, open) {
  if (!isOn()) return;
  try {
    const notification = new Notification(visibleString(message.subject) || t("message.no_subject"), {
      body: t("notify.body", { from: visibleString(authorLine(message)) || t("message.no_sender"), address }),
      icon: "/page/icon.svg",
      tag: message.id,
    });
    notification.addEventListener("click", () => {
      window.focus();
      notification.close();
      open();
    });
  } catch {
    // Some phones show notifications of service workers only.
  }
}
