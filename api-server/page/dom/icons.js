// Line icons on a grid of 24, drawn with the colour of the text around them.

import { svg } from "./element.js";

const PATHS = {
  copy: ["M9 9h11v11H9z", "M5 15H4V4h11v1"],
  check: ["M5 12.5l4.5 4.5L19 7.5"],
  qr: ["M4 4h6v6H4z", "M14 4h6v6h-6z", "M4 14h6v6H4z", "M14 14h2v2", "M20 14v6h-6", "M18 17v0"],
  mail: ["M3 6h18v12H3z", "M3 7l9 6 9-6"],
  plus: ["M12 5v14", "M5 12h14"],
  close: ["M6 6l12 12", "M18 6L6 18"],
  back: ["M11 5l-7 7 7 7", "M4 12h16"],
  search: ["M10.5 4a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13z", "M15.5 15.5L20 20"],
  trash: ["M4 7h16", "M9 7V4h6v3", "M6 7l1 13h10l1-13", "M10 11v5", "M14 11v5"],
  download: ["M12 4v11", "M7 11l5 5 5-5", "M5 20h14"],
  file: ["M6 3h8l4 4v14H6z", "M14 3v4h4"],
  image: ["M4 5h16v14H4z", "M4 16l5-5 4 4 3-3 4 4", "M15.5 9v0"],
  link: ["M10 14l4-4", "M8.5 11.5l-2 2a3.5 3.5 0 0 0 5 5l2-2", "M15.5 12.5l2-2a3.5 3.5 0 0 0-5-5l-2 2"],
  warning: ["M12 4l9 16H3z", "M12 10v4", "M12 17v0"],
  bell: ["M6 16V11a6 6 0 0 1 12 0v5l2 2H4z", "M10 21h4"],
  bell_off: ["M6 16v-5a6 6 0 0 1 9.5-4.9", "M18 11v5l2 2H7", "M10 21h4", "M4 4l16 16"],
  sun: ["M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8z", "M12 2v2", "M12 20v2", "M2 12h2", "M20 12h2", "M5 5l1.4 1.4", "M17.6 17.6L19 19", "M19 5l-1.4 1.4", "M6.4 17.6L5 19"],
  moon: ["M20 14.5A8.5 8.5 0 1 1 9.5 4a6.8 6.8 0 0 0 10.5 10.5z"],
  half: ["M12 3a9 9 0 1 0 0 18z", "M12 3a9 9 0 0 1 0 18"],
  keyboard: ["M3 6h18v12H3z", "M7 10v0", "M11 10v0", "M15 10v0", "M17 14v0", "M8 14h6"],
  sign_in: ["M14 4h6v16h-6", "M4 12h11", "M11 8l4 4-4 4"],
  sign_out: ["M10 4H4v16h6", "M9 12h11", "M16 8l4 4-4 4"],
  key: ["M8 11a4 4 0 1 0 0 8 4 4 0 0 0 0-8z", "M11 12.5L20 4", "M16 8l3 3"],
  clock: ["M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18z", "M12 7v5l3.5 2"],
  shield: ["M12 3l8 3v6c0 5-3.5 8-8 9-4.5-1-8-4-8-9V6z", "M8.5 12l2.5 2.5 4.5-5"],
  bolt: ["M13 3L5 14h6l-1 7 8-11h-6z"],
  globe: ["M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18z", "M3 12h18", "M12 3c3 3 3.5 6 3.5 9s-.5 6-3.5 9c-3-3-3.5-6-3.5-9s.5-6 3.5-9z"],
  hook: ["M12 4v9a4 4 0 1 1-8 0v-1", "M12 4a2 2 0 1 0 0-.01", "M4 12l-2 2", "M4 12l2 2"],
  gauge: ["M4 18a9 9 0 1 1 16 0", "M12 15l4-6"],
  inbox: ["M4 5h16l1 9v5H3v-5z", "M3 14h5l1.5 3h5L16 14h5"],
  stack: ["M4 8l8-4 8 4-8 4z", "M4 12l8 4 8-4", "M4 16l8 4 8-4"],
  refresh: ["M20 11a8 8 0 0 0-14-4.5L4 9", "M4 4v5h5", "M4 13a8 8 0 0 0 14 4.5l2-2.5", "M20 20v-5h-5"],
};

/** An icon. It says nothing to a screen reader: the button or the text beside it does. */
export const icon = (name) =>
  svg("svg", { class: "icon", viewBox: "0 0 24 24", "aria-hidden": "true", focusable: "false" },
    PATHS[name].map((d) => svg("path", { d })));
