// The deliveries of a webhook as bars: how long each attempt took, on a logarithmic scale, and which ones failed.

import { element, svg } from "../dom/element.js";
import { fullTime, milliseconds } from "../text/format.js";
import { t } from "../text/text.js";
import { deliveryResult } from "./delivery_result.js";

const [WIDTH, HEIGHT] = [600, 120];
const LONGEST = 30_000;
const LINES = [10, 100, 1_000, 10_000];

/** 0 for a millisecond or less, 1 for the longest. */
const scale = (ms) => Math.min(1, Math.log10(Math.max(1, ms)) / Math.log10(LONGEST));

/** `deliveries` are newest first, as the service lists them. */
export function deliveryChart(deliveries) {
  const shown = [...deliveries].reverse();
  const failed = shown.filter(({ error }) => error !== null).length;
  const slot = Math.min(WIDTH / shown.length, 30);
  const bars = shown.map((delivery, at) => {
    const isFailed = delivery.error !== null;
    const x = WIDTH - (shown.length - at) * slot;
    const height = Math.max(3, scale(delivery.duration_ms) * HEIGHT);
    return svg("g", { class: isFailed ? "bar-failed" : "bar-delivered" },
      svg("title", {}, `${fullTime(delivery.created_at)}: ${deliveryResult(delivery)}, ${milliseconds(delivery.duration_ms)}`),
      // A failed attempt has a ground of its own: it is not told by its colour alone.
      isFailed && svg("rect", { class: "bar-ground", x, y: 0, width: slot, height: HEIGHT }),
      svg("rect", { class: "bar", x: x + slot * 0.15, y: HEIGHT - height, width: slot * 0.7, height }));
  });
  const lines = LINES.map((ms) => {
    const label = element("span", { class: "chart-label" }, milliseconds(ms));
    label.style.setProperty("inset-block-end", `${(100 * scale(ms)).toFixed(1)}%`);
    return label;
  });
  return element("figure", { class: "chart" },
    element("div", { class: "chart-area" }, lines,
      svg("svg", {
        viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img",
        "aria-label": t("deliveries.chart_label", { count: shown.length, failed }),
      },
      LINES.map((ms) => svg("line", { class: "chart-line", x1: 0, x2: WIDTH, y1: HEIGHT * (1 - scale(ms)), y2: HEIGHT * (1 - scale(ms)) })),
      bars)),
    element("div", { class: "chart-times", "aria-hidden": "true" },
      element("span", {}, fullTime(shown[0].created_at)), element("span", {}, fullTime(shown.at(-1).created_at))),
    element("figcaption", {}, t("deliveries.chart", { count: shown.length }), " ",
      element("span", { class: "key-delivered" }, t("deliveries.delivered", { count: shown.length - failed })), " ",
      element("span", { class: "key-failed" }, t("deliveries.failed", { count: failed }))));
}
