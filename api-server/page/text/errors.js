// What an error means to a person: a title, and what to do.

import { has, t } from "./text.js";

/** Words for a RequestError, or for anything else that was thrown. */
export function errorWords(error) {
  const code = typeof error?.code === "string" ? error.code : "unexpected";
  if (has(`errors.${code}`)) {
    return { title: t(`errors.${code}.title`), advice: t(`errors.${code}.advice`) };
  }
  return { title: t("errors.unexpected.title"), advice: error?.serverMessage || t("errors.unexpected.advice") };
}

/** The same on one line, for toasts and fields. */
export function errorLine(error) {
  const { title, advice } = errorWords(error);
  return `${title} ${advice}`;
}
