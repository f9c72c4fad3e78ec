// Host names that look like others are shown twice: as Unicode, and as the A-labels that DNS is asked for.

import { decodeLabel } from "./punycode.js";

/** Both forms of a host name, and whether they differ. */
export function hostForms(host) {
  let ascii = host;
  try {
    ascii = new URL(`http://${host}/`).hostname || host;
  } catch {
    // Not a host name: shown as it is.
  }
  const unicode = ascii.split(".").map(decodeLabel).join(".");
  return { ascii, unicode, differ: ascii !== unicode };
}

/** Both forms of the part of an address after its last `@`; null where they are the same. */
export function addressForms(address) {
  const at = address.lastIndexOf("@");
  if (at < 0) return null;
  const forms = hostForms(address.slice(at + 1));
  return forms.differ ? forms : null;
}

// Names of files and of programs look like hosts, too.
const FILE = /\.(pdf|docx?|xlsx?|pptx?|txt|csv|zip|gz|png|jpe?g|gif|svg|webp|mp[34]|html?|js|ts|md|json|ya?ml)\s*$/i;

/** The host that a text seems to name, such as `example.com/path`; null where it names none. */
export function hostInText(text) {
  if (text.length > 300) return null;
  const found = /^\s*(?:https?:\/\/)?((?:[\p{L}\p{N}-]{1,63}\.)+[\p{L}][\p{L}\p{N}-]{1,62})(?:[:/?#]\S*)?\s*$/iu.exec(text);
  return found && !FILE.test(text) ? hostForms(found[1]).ascii.toLowerCase() : null;
}
