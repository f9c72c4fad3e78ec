// One timer for everything that counts down. It rests while the page is hidden.

const entries = new Set();
let timer = 0;

function run() {
  for (const entry of entries) {
    if (entry.wasShown && !entry.node.isConnected) entries.delete(entry);
    else {
      entry.wasShown ||= entry.node.isConnected;
      entry.update(Date.now());
    }
  }
  if (entries.size === 0) stop();
}

function stop() {
  clearInterval(timer);
  timer = 0;
}

function start() {
  if (timer === 0 && entries.size > 0 && !document.hidden) timer = setInterval(run, 1000);
}

document.addEventListener("visibilitychange", () => {
  if (document.hidden) stop();
  else {
    run();
    start();
  }
});

/** Calls `update(now)` now and each second, until the node is taken off the page. */
export function everySecond(node, update) {
  entries.add({ node, update, wasShown: node.isConnected });
  update(Date.now());
  start();
}
