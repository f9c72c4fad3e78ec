// A QR code as SVG: one path, with the quiet zone that scanners need, dark on light in either theme.

import { svg } from "../dom/element.js";
import { encode } from "./encoder.js";

const QUIET = 4;

/** Null where the text is too long for a code. */
export function qrImage(text, label) {
  const modules = encode(text);
  if (modules === null) return null;
  const size = modules.length + 2 * QUIET;
  const path = modules.flatMap((line, row) =>
    line.map((isDark, column) => (isDark ? `M${column + QUIET} ${row + QUIET}h1v1h-1z` : ""))).join("");
  return svg("svg", { class: "qr", viewBox: `0 0 ${size} ${size}`, role: "img", "aria-label": label, "shape-rendering": "crispEdges" },
    svg("rect", { width: size, height: size, fill: "#fff" }),
    svg("path", { d: path, fill: "#111" }));
}
