// Deleting a message with Undo: the service deletes for good, so the request waits until the notice has ended.

import { toast } from "../dom/toast.js";
import { errorLine } from "../text/errors.js";
import { t } from "../text/text.js";

const pending = new Set();

// Who leaves the page meant what they pressed.
addEventListener("pagehide", () => {
  for (const deletion of pending) deletion.send(true);
});

/** Takes the message off the list at once, and deletes it when the notice ends. */
export function deleteWithUndo(feed, id) {
  const message = feed.messages.delete(id);
  if (!message) return null;
  let isSent = false;
  const deletion = {
    async send(keepalive = false) {
      if (isSent) return;
      isSent = true;
      pending.delete(deletion);
      try {
        await feed.api.deleteMessage(id, keepalive);
      } catch (error) {
        if (error.code === "not_found" || error.code === "email_expired") return;
        feed.messages.restore(message);
        toast(errorLine(error), { tone: "danger" });
      }
    },
  };
  pending.add(deletion);
  const notice = toast(t("message.deleted"), {
    action: t("message.undo"),
    seconds: 8,
    onEnd: (isUndone) => {
      if (!isUndone) deletion.send();
      else if (!isSent) {
        pending.delete(deletion);
        feed.messages.restore(message);
      }
    },
  });
  return notice;
}
