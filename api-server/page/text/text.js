// Texts by key, in the language of the reader. A further language is a file beside en.js and a line in LANGUAGES.

import english from "./en.js";

const LANGUAGES = {
  en: async () => english,
};

const wanted = navigator.languages.map((tag) => tag.toLowerCase().split("-")[0]);
export const language = wanted.find((tag) => Object.hasOwn(LANGUAGES, tag)) ?? "en";
const texts = await LANGUAGES[language]();
document.documentElement.lang = language;

const plural = new Intl.PluralRules(language);

const find = (root, key) => key.split(".").reduce((node, part) => node?.[part], root);

/** Whether there is a text of this key. */
export const has = (key) => (find(texts, key) ?? find(english, key)) !== undefined;

/** The text of a key such as `inbox.copy`, with `{name}` replaced. A text with forms is chosen by `{count}`. */
export function t(key, values = {}) {
  let text = find(texts, key) ?? find(english, key);
  if (text && typeof text === "object") text = text[plural.select(values.count)] ?? text.other;
  if (typeof text !== "string") return key;
  return text.replace(/\{(\w+)\}/g, (whole, name) => {
    const value = values[name];
    if (value === undefined) return whole;
    return typeof value === "number" ? value.toLocaleString(language) : String(value);
  });
}

/** A text as it is compared: whatever its case and however its accents are encoded, without characters that are not seen.
 * Upper case has the letters that case folding expands, such as ß. */
export function folded(text) {
  return text.replace(/\p{Default_Ignorable_Code_Point}/gu, "").normalize("NFD").toUpperCase().normalize("NFC");
}
