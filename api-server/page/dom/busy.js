// A button whose request is in flight keeps the focus, says that it is busy, and does nothing when pressed again.

/** Makes a listener that runs one at a time. */
export function whileBusy(node, action) {
  let isBusy = false;
  return async (event) => {
    event?.preventDefault();
    if (isBusy || node.getAttribute("aria-disabled") === "true") return;
    isBusy = true;
    node.setAttribute("aria-busy", "true");
    node.setAttribute("aria-disabled", "true");
    try {
      await action(event);
    } finally {
      isBusy = false;
      node.removeAttribute("aria-busy");
      // A count down that has begun gives the button back itself.
      if (!("countsDown" in node.dataset)) node.removeAttribute("aria-disabled");
    }
  };
}
