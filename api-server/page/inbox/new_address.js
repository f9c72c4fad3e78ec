// Ways to a mailbox: a random address in one click, a name of one's own, or signing in.

import { whileBusy } from "../dom/busy.js";
import { button, element } from "../dom/element.js";
import { field, select } from "../dom/field.js";
import { form, waitAsTold } from "../dom/form.js";
import { icon } from "../dom/icons.js";
import { createMailbox, signIn } from "../http/public_api.js";
import { errorLine } from "../text/errors.js";
import { t } from "../text/text.js";
import { randomLocalPart, randomPassword } from "./random_name.js";
import { load, save } from "../storage/settings.js";

const ATTEMPTS = 4;

/** `service` has the domains and the rules of names; `onOpened(account)` gets what the service answered. */
export function newAddress({ service, onOpened, address = "" }) {
  const { domains, rules } = service;
  const remembered = load("domain");
  const initial = domains.find(({ domain }) => domain === remembered) ?? domains.find((domain) => domain.default) ?? domains[0];
  const domainField = field({
    label: t("new.domain"),
    input: select({ on: { change: () => chosen() } }, domains.map(({ domain }) => [domain, domain]), initial?.domain),
  });
  const chosen = () => {
    save("domain", domainField.value);
    at.textContent = `@${domainField.value}`;
    return domainField.value;
  };

  const failure = element("p", { class: "field-error", role: "alert" });
  const random = button({ class: "button button-primary button-large" }, icon("bolt"), element("span", {}, t("new.random")));
  random.addEventListener("click", whileBusy(random, async () => {
    failure.textContent = "";
    try {
      const password = randomPassword();
      onOpened({ ...(await createRandom(chosen(), password)), password });
    } catch (error) {
      failure.textContent = errorLine(error);
      waitAsTold(random, error);
    }
  }));

  const at = element("span", { class: "field-suffix" }, `@${initial?.domain ?? ""}`);
  const name = field({
    label: t("new.name"), hint: t("new.name_hint"), suffix: at,
    input: element("input", { autocomplete: "off", autocapitalize: "none", spellcheck: "false", maxlength: rules?.max_length ?? 64, required: true }),
  });
  const password = field({
    label: t("new.password"), hint: t("new.password_hint"),
    input: element("input", { type: "password", autocomplete: "new-password", maxlength: 128 }),
  });
  const named = form({
    label: t("new.create"),
    fields: [name, password],
    errorFields: { address_taken: name, invalid_address: name, password_too_short: password, password_too_long: password },
    action: async () => {
      const local = name.value.trim().toLowerCase();
      const wrong = nameError(local, rules);
      if (wrong) {
        name.setError(wrong);
        name.input.focus();
        return;
      }
      const secret = password.value || randomPassword();
      const account = await createMailbox(`${local}@${chosen()}`, secret);
      onOpened({ ...account, password: password.value ? null : secret });
    },
  });

  const user = field({
    label: t("new.address"),
    input: element("input", { type: "email", autocomplete: "username", value: address, required: true, spellcheck: "false" }),
  });
  const known = field({
    label: t("new.password_known"),
    input: element("input", { type: "password", autocomplete: "current-password", required: true }),
  });
  const signInForm = form({
    label: t("new.sign_in"),
    fields: [user, known],
    action: async () => onOpened(await signIn(user.value.trim(), known.value)),
  });

  const way = (name, title, content, open) => element("details", { class: "way", name: "way", open },
    element("summary", {}, icon(name), element("span", {}, title)), content);
  return element("div", { class: "new-address" },
    domains.length > 1 ? domainField.node : null,
    initial ? random : element("p", { class: "note" }, t("new.no_domain")),
    failure,
    initial && way("mail", t("new.own_name"), named, false),
    way("sign_in", t("new.existing"), signInForm, address !== ""));
}

/** A taken random name is nobody's fault: another one is tried. */
async function createRandom(domain, password) {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await createMailbox(`${randomLocalPart()}@${domain}`, password);
    } catch (error) {
      if (error.code !== "address_taken" || attempt === ATTEMPTS) throw error;
    }
  }
}

function nameError(local, rules) {
  if (!rules) return null;
  if (rules.reserved?.includes(local)) return t("new.name_reserved");
  if (!new RegExp(rules.pattern).test(local) || local.includes("..")) return t("new.name_invalid");
  return null;
}
