// QR codes (ISO/IEC 18004): byte mode, versions 1 to 10, error correction level M.
//
// Test vectors:
//   format bits of level M, masks 0 to 7 (formatBits):
//     101010000010010 101000100100101 101111001111100 101101101001011
//     100010111111001 100000011001110 100111110010111 100101010100000
//   version bits (versionBits): 7 -> 000111110010010100, 8 -> 001000010110111100, 10 -> 001010010011010011
//   sizes: 14 bytes -> version 1 (21 modules), 15 -> 2 (25), 62 -> 4 (33), 213 -> 10 (57), 214 -> null
//   codewords of "a@b.c" before error correction, in version 1:
//     40 56 14 06 22 e6 30 ec 11 ec 11 ec 11 ec 11 ec

import { correctionOf } from "./reed_solomon.js";

// By version: error correction codewords of a block, and the data codewords of its blocks.
const BLOCKS = [
  null,
  [10, [16]],
  [16, [28]],
  [26, [44]],
  [18, [32, 32]],
  [24, [43, 43]],
  [16, [27, 27, 27, 27]],
  [18, [31, 31, 31, 31]],
  [22, [38, 38, 39, 39]],
  [22, [36, 36, 36, 37, 37]],
  [26, [43, 43, 43, 43, 44]],
];

// By version: rows and columns where alignment patterns have their centres.
const ALIGNMENT = [
  null, [], [6, 18], [6, 22], [6, 26], [6, 30], [6, 34], [6, 22, 38], [6, 24, 42], [6, 26, 46], [6, 28, 50],
];

const MASKS = [
  (row, column) => (row + column) % 2 === 0,
  (row) => row % 2 === 0,
  (row, column) => column % 3 === 0,
  (row, column) => (row + column) % 3 === 0,
  (row, column) => (Math.floor(row / 2) + Math.floor(column / 3)) % 2 === 0,
  (row, column) => ((row * column) % 2) + ((row * column) % 3) === 0,
  (row, column) => (((row * column) % 2) + ((row * column) % 3)) % 2 === 0,
  (row, column) => (((row + column) % 2) + ((row * column) % 3)) % 2 === 0,
];

const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);

/** A BCH code: `data`, followed by the remainder of its division. */
function bch(data, divisor, bits) {
  let remainder = data << bits;
  for (let bit = 31 - Math.clz32(remainder); bit >= bits; bit -= 1) {
    if (remainder & (1 << bit)) remainder ^= divisor << (bit - bits);
  }
  return (data << bits) | remainder;
}

/** Level M is 00, so the data are the number of the mask. */
export const formatBits = (mask) => bch(mask, 0x537, 10) ^ 0x5412;
export const versionBits = (version) => bch(version, 0x1f25, 12);

const lengthBits = (version) => (version < 10 ? 8 : 16);

/** The smallest version that holds so many bytes; null where none does. */
function versionFor(length) {
  for (let version = 1; version <= 10; version += 1) {
    if (4 + lengthBits(version) + 8 * length <= 8 * sum(BLOCKS[version][1])) return version;
  }
  return null;
}

/** Mode, length, data, terminator and padding. */
export function dataCodewords(bytes, version) {
  const bits = [];
  const push = (value, length) => {
    for (let bit = length - 1; bit >= 0; bit -= 1) bits.push((value >> bit) & 1);
  };
  push(0b0100, 4);
  push(bytes.length, lengthBits(version));
  for (const byte of bytes) push(byte, 8);
  const capacity = 8 * sum(BLOCKS[version][1]);
  push(0, Math.min(4, capacity - bits.length));
  push(0, (8 - (bits.length % 8)) % 8);
  for (let pad = 0xec; bits.length < capacity; pad ^= 0xec ^ 0x11) push(pad, 8);
  return Array.from({ length: bits.length / 8 }, (_, at) => parseInt(bits.slice(8 * at, 8 * at + 8).join(""), 2));
}

/** Data and error correction of all blocks, interleaved. */
function interleaved(data, version) {
  const [degree, lengths] = BLOCKS[version];
  let from = 0;
  const blocks = lengths.map((length) => data.slice(from, (from += length)));
  const corrections = blocks.map((block) => correctionOf(block, degree));
  const words = [];
  for (let at = 0; at < Math.max(...lengths); at += 1) {
    for (const block of blocks) if (at < block.length) words.push(block[at]);
  }
  for (let at = 0; at < degree; at += 1) for (const correction of corrections) words.push(correction[at]);
  return words;
}

/** What stands in every code of the version; `isFixed` are the modules that no data may use. */
function patterns(version) {
  const size = 17 + 4 * version;
  const grid = () => Array.from({ length: size }, () => new Array(size).fill(false));
  const [modules, isFixed] = [grid(), grid()];
  const set = (row, column, isDark) => {
    modules[row][column] = isDark;
    isFixed[row][column] = true;
  };
  for (let at = 0; at < size; at += 1) {
    set(6, at, at % 2 === 0);
    set(at, 6, at % 2 === 0);
  }
  for (const [top, left] of [[0, 0], [0, size - 7], [size - 7, 0]]) {
    for (let row = -1; row <= 7; row += 1) {
      for (let column = -1; column <= 7; column += 1) {
        const [y, x] = [top + row, left + column];
        if (y < 0 || x < 0 || y >= size || x >= size) continue;
        const ring = Math.max(Math.abs(row - 3), Math.abs(column - 3));
        set(y, x, ring !== 2 && ring !== 4);
      }
    }
  }
  const centres = ALIGNMENT[version];
  for (const y of centres) {
    for (const x of centres) {
      const last = size - 7;
      if ((y === 6 && x === 6) || (y === 6 && x === last) || (y === last && x === 6)) continue;
      for (let row = -2; row <= 2; row += 1) {
        for (let column = -2; column <= 2; column += 1) {
          set(y + row, x + column, Math.max(Math.abs(row), Math.abs(column)) !== 1);
        }
      }
    }
  }
  placeFormat(set, size, 0);
  if (version >= 7) {
    const bits = versionBits(version);
    for (let bit = 0; bit < 18; bit += 1) {
      const [a, b] = [Math.floor(bit / 3), size - 11 + (bit % 3)];
      set(a, b, ((bits >> bit) & 1) === 1);
      set(b, a, ((bits >> bit) & 1) === 1);
    }
  }
  return { size, modules, isFixed, set };
}

/** The format bits, twice, and the module that is always dark. */
function placeFormat(set, size, mask) {
  const bits = formatBits(mask);
  for (let bit = 0; bit < 15; bit += 1) {
    const isDark = ((bits >> bit) & 1) === 1;
    if (bit < 6) set(bit, 8, isDark);
    else if (bit < 8) set(bit + 1, 8, isDark);
    else if (bit === 8) set(8, 7, isDark);
    else set(8, 14 - bit, isDark);
    if (bit < 8) set(8, size - 1 - bit, isDark);
    else set(size - 15 + bit, 8, isDark);
  }
  set(size - 8, 8, true);
}

/** Two columns at a time from the right, up and down in turns. */
function placeData(modules, isFixed, size, words) {
  let at = 0;
  let isUp = true;
  for (let right = size - 1; right > 0; right -= 2) {
    if (right === 6) right = 5;
    for (let step = 0; step < size; step += 1) {
      const row = isUp ? size - 1 - step : step;
      for (const column of [right, right - 1]) {
        if (isFixed[row][column]) continue;
        modules[row][column] = at < 8 * words.length && ((words[at >> 3] >> (7 - (at & 7))) & 1) === 1;
        at += 1;
      }
    }
    isUp = !isUp;
  }
}

const FINDER_LIKE = [true, false, true, true, true, false, true];

/** How hard a code is to read: the four rules of the standard. */
function penalty(modules) {
  const size = modules.length;
  const columns = modules.map((_, at) => modules.map((row) => row[at]));
  let points = 0;
  let dark = 0;
  for (const line of [...modules, ...columns]) {
    let run = 1;
    for (let at = 1; at <= size; at += 1) {
      if (at < size && line[at] === line[at - 1]) run += 1;
      else {
        if (run >= 5) points += run - 2;
        run = 1;
      }
    }
    for (let at = 0; at + 7 <= size; at += 1) {
      if (!FINDER_LIKE.every((isDark, offset) => line[at + offset] === isDark)) continue;
      const isLight = (from, to) => from >= 0 && to <= size && line.slice(from, to).every((module) => !module);
      if (isLight(at - 4, at) || isLight(at + 7, at + 11)) points += 40;
    }
  }
  for (let row = 0; row < size; row += 1) {
    for (let column = 0; column < size; column += 1) {
      const module = modules[row][column];
      if (module) dark += 1;
      if (row + 1 < size && column + 1 < size && module === modules[row][column + 1]
        && module === modules[row + 1][column] && module === modules[row + 1][column + 1]) points += 3;
    }
  }
  return points + 10 * Math.floor(Math.abs((100 * dark) / (size * size) - 50) / 5);
}

/** The modules of a text's code by row, true for dark; null where the text is too long. */
export function encode(text) {
  const bytes = new TextEncoder().encode(text);
  const version = versionFor(bytes.length);
  if (version === null) return null;
  const { size, modules, isFixed, set } = patterns(version);
  placeData(modules, isFixed, size, interleaved(dataCodewords(bytes, version), version));
  let best = null;
  MASKS.forEach((isFlipped, mask) => {
    placeFormat(set, size, mask);
    const masked = modules.map((line, row) =>
      line.map((module, column) => (isFixed[row][column] ? module : module !== isFlipped(row, column))));
    const points = penalty(masked);
    if (best === null || points < best.points) best = { points, masked };
  });
  return best.masked;
}
