// Who a mail says that it is from.

/** Name and address of the first author of a From header as the service shows it. */
export function parseFrom(from, fallback = "") {
  const found = /^\s*(.*?)\s*<([^<>]*)>/s.exec(from ?? "");
  if (found) return { name: found[1], address: found[2] };
  const text = (from ?? "").trim();
  return text.includes("@") || text === "" ? { name: "", address: text || fallback } : { name: text, address: fallback };
}

/** Whether a name pretends to be an address, and not the one that it stands beside. */
export const claimsOtherAddress = ({ name, address }) => {
  const claimed = /[^\s<>"'()]+@[^\s<>"'()]+\.[^\s<>"'()]+/.exec(name);
  return claimed !== null && claimed[0].toLowerCase() !== address.toLowerCase();
};
