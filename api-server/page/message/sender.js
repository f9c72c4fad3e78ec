// Who a mail says that it is from. All of it was written by the sender, so it is read in one pass and never trusted.

// An address in angle brackets at the end of an author.
const AT_END = /<([^<>]*)>(?=\s*(?:,|$))/;
const ADDRESS = /[^\s<>"'()]+@[^\s<>"'()]+\.[^\s<>"'()]+/;

/**
 * Name and address of the first author of a From header as the service shows it: `Name <address>, …`.
 * `email` is the address that the service found in it, where that is known: a name can look like an address in brackets.
 */
export function parseFrom(from, email = "") {
  const text = (from ?? "").trim();
  if (email) {
    const at = text.toLowerCase().indexOf(`<${email.toLowerCase()}>`);
    if (at >= 0) return { name: text.slice(0, at).trim(), address: email };
    return { name: text.toLowerCase() === email.toLowerCase() ? "" : text, address: email };
  }
  const found = AT_END.exec(text);
  if (found) return { name: text.slice(0, found.index).trim(), address: found[1] };
  return text.includes("@") ? { name: "", address: text } : { name: text, address: "" };
}

/** Whether a name pretends to be an address, and not the one that it stands beside. */
export function claimsOtherAddress({ name, address }) {
  const claimed = ADDRESS.exec(name.slice(0, 1000));
  return claimed !== null && claimed[0].toLowerCase() !== address.toLowerCase();
}

/** The one line that a list has for an author: the name, unless it pretends to be an address. */
export function authorLine({ from, from_email: email, sender }) {
  const author = parseFrom(from, email);
  const line = author.name && !claimsOtherAddress(author) ? author.name : from || author.address || sender || "";
  return line.slice(0, 300);
}
