// What came of an attempt, in words.

import { has, t } from "../text/text.js";

export function deliveryResult({ status_code: status, error, detail, given_up: isGivenUp }) {
  const result = attemptResult(status, error, detail);
  return isGivenUp ? t("deliveries.given_up", { result }) : result;
}

function attemptResult(status, error, detail) {
  if (error === null) return t("deliveries.result.delivered", { status: String(status) });
  if (error === "http_status") return t("deliveries.result.http_status", { status: String(status) });
  if (detail !== null && has(`deliveries.detail.${detail}`)) return t(`deliveries.detail.${detail}`);
  return has(`deliveries.result.${error}`) ? t(`deliveries.result.${error}`) : error;
}
