// Reed-Solomon error correction of QR codes: GF(2^8) by x^8 + x^4 + x^3 + x^2 + 1, generator element 2.

const EXP = new Uint8Array(512);
const LOG = new Uint8Array(256);
for (let i = 0, x = 1; i < 255; i += 1) {
  EXP[i] = EXP[i + 255] = x;
  LOG[x] = i;
  x = x & 0x80 ? (x << 1) ^ 0x11d : x << 1;
}

const multiply = (a, b) => (a === 0 || b === 0 ? 0 : EXP[LOG[a] + LOG[b]]);

/** Coefficients of (x - 2^0)(x - 2^1)…(x - 2^(degree - 1)), without the leading 1. */
function generator(degree) {
  let polynomial = [1];
  for (let i = 0; i < degree; i += 1) {
    const next = [...polynomial, 0];
    polynomial.forEach((coefficient, at) => {
      next[at + 1] ^= multiply(coefficient, EXP[i]);
    });
    polynomial = next;
  }
  return polynomial.slice(1);
}

/**
 * The error correction codewords of a block.
 *
 * Test vector, "HELLO WORLD" in version 1-M (10 codewords):
 *   32 91 11 120 209 114 220 77 67 64 236 17 236 17 236 17  ->  196 35 39 119 235 215 231 226 93 23
 */
export function correctionOf(data, degree) {
  const divisor = generator(degree);
  const remainder = new Array(degree).fill(0);
  for (const byte of data) {
    const factor = byte ^ remainder.shift();
    remainder.push(0);
    divisor.forEach((coefficient, at) => {
      remainder[at] ^= multiply(coefficient, factor);
    });
  }
  return remainder;
}
