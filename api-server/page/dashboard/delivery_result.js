// What came of an attempt, in words.

import { has, t } from "../text/text.js";

export function deliveryResult({ status_code: status, error }) {
  if (error === null) return t("deliveries.result.delivered", { status: String(status) });
  if (error === "http_status") return t("deliveries.result.http_status", { status: String(status) });
  return has(`deliveries.result.${error}`) ? t(`deliveries.result.${error}`) : error;
}
