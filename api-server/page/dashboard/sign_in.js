// Signing in with a Pro token, which is sent once and kept nowhere.

import { element } from "../dom/element.js";
import { field } from "../dom/field.js";
import { form } from "../dom/form.js";
import { icon } from "../dom/icons.js";
import { errorLine } from "../text/errors.js";
import { has, t } from "../text/text.js";
import { signIn } from "./session.js";

/** `reason` is why a session ended; `linkError` why a sign-in link failed. */
export function signInView({ reason, linkError, onSignedIn }) {
  const token = field({
    label: t("sign_in.token"), hint: t("sign_in.token_hint"),
    // A password field, so that it is not shown; not one that the browser should remember.
    input: element("input", { type: "password", autocomplete: "off", spellcheck: "false", required: true, placeholder: "tm_pro_…" }),
  });
  const signInForm = form({
    label: t("sign_in.submit"),
    fields: [token],
    errorFields: { invalid_token: token },
    action: async () => {
      const value = token.value.trim();
      if (!value.startsWith("tm_pro_")) {
        token.setError(t(value.startsWith("tm_live_") ? "sign_in.is_live_token" : "sign_in.is_no_token"));
        token.input.focus();
        return;
      }
      try {
        await signIn(value);
      } catch (error) {
        if (error.code !== "session_expired") throw error;
        // The service's word for a token past its end.
        token.setError(t("sign_in.token_expired"));
        token.input.focus();
        return;
      }
      token.input.value = "";
      await onSignedIn();
    },
  });
  const note = linkError ? t("sign_in.link_failed", { why: errorLine(linkError) }) : reason && t(has(`sign_in.ended.${reason}`) ? `sign_in.ended.${reason}` : "sign_in.ended.session_expired");
  return element("div", { class: "welcome" },
    element("div", { class: "welcome-card" },
      element("h1", { tabindex: "-1" }, t("sign_in.title")),
      element("p", { class: "lead" }, t("sign_in.lead")),
      note && element("p", { class: "notice", role: "status" }, icon(reason === "signed_out" ? "check" : "clock"), note),
      signInForm,
      element("p", { class: "note" }, t("sign_in.session"))));
}
