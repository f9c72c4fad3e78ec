// Decodes A-labels (RFC 3492). The other direction is what `URL` does.

const BASE = 36, T_MIN = 1, T_MAX = 26, SKEW = 38, DAMP = 700;

function adapt(delta, points, isFirst) {
  let rest = isFirst ? Math.floor(delta / DAMP) : delta >> 1;
  rest += Math.floor(rest / points);
  let k = 0;
  for (; rest > ((BASE - T_MIN) * T_MAX) >> 1; k += BASE) rest = Math.floor(rest / (BASE - T_MIN));
  return k + Math.floor(((BASE - T_MIN + 1) * rest) / (rest + SKEW));
}

function digit(code) {
  if (code >= 0x30 && code <= 0x39) return code - 0x30 + 26;
  if (code >= 0x61 && code <= 0x7a) return code - 0x61;
  return BASE;
}

/** The Unicode label of one that begins with `xn--`; itself where it can't be decoded. */
export function decodeLabel(label) {
  if (!/^xn--/i.test(label)) return label;
  const input = label.slice(4).toLowerCase();
  const last = input.lastIndexOf("-");
  const output = last > 0 ? [...input.slice(0, last)].map((c) => c.codePointAt(0)) : [];
  let [n, i, bias] = [128, 0, 72];
  for (let at = last > 0 ? last + 1 : 0; at < input.length; ) {
    const start = i;
    for (let weight = 1, k = BASE; ; k += BASE) {
      const value = at < input.length ? digit(input.charCodeAt(at)) : BASE;
      at += 1;
      if (value >= BASE) return label;
      i += value * weight;
      const threshold = k <= bias ? T_MIN : k >= bias + T_MAX ? T_MAX : k - bias;
      if (value < threshold) break;
      weight *= BASE - threshold;
      if (weight > 0x7fffffff || i > 0x7fffffff) return label;
    }
    bias = adapt(i - start, output.length + 1, start === 0);
    n += Math.floor(i / (output.length + 1));
    i %= output.length + 1;
    if (n > 0x10ffff || (n >= 0xd800 && n <= 0xdfff)) return label;
    output.splice(i, 0, n);
    i += 1;
  }
  return String.fromCodePoint(...output);
}
