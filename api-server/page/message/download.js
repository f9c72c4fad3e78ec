// Files of a mail are saved, never opened: a blob of the page's origin that a browser rendered could run in it.

import { element } from "../dom/element.js";

const isUnsafe = /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\/\\:*?"<>|]/g;

/** A file name without what hides or reorders its ending. */
export const safeFileName = (name) => name.replace(isUnsafe, "_").replace(/^\.+/, "_").slice(0, 200) || "file";

export function save(blob, name) {
  const url = URL.createObjectURL(new Blob([blob], { type: "application/octet-stream" }));
  const link = element("a", { href: url, download: safeFileName(name), hidden: true });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
