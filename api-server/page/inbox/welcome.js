// The first visit: what this is, and an address in one click.

import { element } from "../dom/element.js";
import { icon } from "../dom/icons.js";
import { problem, skeleton } from "../dom/placeholder.js";
import { roughDuration } from "../text/format.js";
import { t } from "../text/text.js";
import { newAddress } from "./new_address.js";

export function welcome({ readService, onOpened }) {
  const ways = element("div", { class: "welcome-ways" }, skeleton(3, "line"));
  const kept = element("p", {}, t("welcome.short_text"));
  const load = async () => {
    try {
      const service = await readService();
      ways.replaceChildren(newAddress({ service, onOpened }));
      if (service.retention !== null) kept.textContent = t("welcome.short_time", { time: roughDuration(service.retention) });
    } catch (error) {
      ways.replaceChildren(problem(error, load));
    }
  };
  load();
  const point = (name, title, text) => element("li", {}, icon(name), element("div", {}, element("h2", {}, title), text));
  return element("div", { class: "welcome" },
    element("div", { class: "welcome-card" },
      element("h1", { tabindex: "-1" }, t("welcome.title")),
      element("p", { class: "lead" }, t("welcome.lead")),
      ways),
    element("ul", { class: "welcome-points" },
      point("bolt", t("welcome.live"), element("p", {}, t("welcome.live_text"))),
      point("shield", t("welcome.safe"), element("p", {}, t("welcome.safe_text"))),
      point("clock", t("welcome.short"), kept)));
}
