// Numbers and times in the reader's language.

import { language, t } from "./text.js";

const time = new Intl.DateTimeFormat(language, { hour: "numeric", minute: "2-digit" });
const day = new Intl.DateTimeFormat(language, { day: "numeric", month: "short" });
const full = new Intl.DateTimeFormat(language, { dateStyle: "medium", timeStyle: "medium" });
const date = new Intl.DateTimeFormat(language, { dateStyle: "medium" });

export const fullTime = (iso) => full.format(new Date(iso));
export const fullDate = (iso) => date.format(new Date(iso));

/** The time of day for today, else the day. */
export function shortTime(iso, now = new Date()) {
  const then = new Date(iso);
  return then.toDateString() === now.toDateString() ? time.format(then) : day.format(then);
}

// Symbols of the SI, which are the same in all languages.
const UNITS = ["B", "kB", "MB", "GB", "TB"];

export function bytes(count) {
  let unit = 0;
  let value = count;
  while (value >= 1000 && unit < UNITS.length - 1) {
    value /= 1000;
    unit += 1;
  }
  const maximumFractionDigits = unit > 0 && value < 10 ? 1 : 0;
  return `${value.toLocaleString(language, { maximumFractionDigits })}\u00a0${UNITS[unit]}`;
}

/** Time left in its two largest units, such as `2 h 5 min`. */
export function duration(milliseconds) {
  const seconds = Math.max(0, Math.round(milliseconds / 1000));
  const [d, h, m, s] = [
    Math.floor(seconds / 86400),
    Math.floor(seconds / 3600) % 24,
    Math.floor(seconds / 60) % 60,
    seconds % 60,
  ];
  if (d > 0) return t("time.days_hours", { d, h });
  if (h > 0) return t("time.hours_minutes", { h, m });
  if (m > 0) return t("time.minutes_seconds", { m, s });
  return t("time.seconds", { s });
}

/** As `duration`, by the minute: for lists, which are not updated each second. */
export function roughDuration(milliseconds) {
  const minutes = Math.ceil(milliseconds / 60000);
  if (minutes <= 1) return t("time.under_a_minute");
  const [d, h, m] = [Math.floor(minutes / 1440), Math.floor(minutes / 60) % 24, minutes % 60];
  if (d > 0) return h > 0 ? t("time.days_hours", { d, h }) : t("time.days", { count: d });
  if (h > 0 && m === 0) return t("time.hours", { count: h });
  return h > 0 ? t("time.hours_minutes", { h, m }) : t("time.minutes", { m });
}

export const milliseconds = (value) =>
  value < 1000 ? t("time.milliseconds", { ms: Math.round(value) }) : t("time.decimal_seconds", { s: Math.round(value / 100) / 10 });
