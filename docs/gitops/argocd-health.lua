-- Health of the kinds of tempmail.dev for Argo CD: resource.customizations.health.tempmail.dev_<Kind>.
local status = obj.status or {}
local conditions = {}
for _, condition in ipairs(status.conditions or {}) do
  conditions[condition.type] = condition
end

local function holds(kind)
  return conditions[kind] ~= nil and conditions[kind].status == "True"
end

local function answer(health, condition, otherwise)
  local message = otherwise
  if condition ~= nil and condition.message ~= nil then
    message = condition.reason .. ": " .. condition.message
  end
  return {status = health, message = message}
end

local ready = conditions.Ready
local observed = status.observedGeneration or (ready or {}).observedGeneration

if obj.metadata.deletionTimestamp ~= nil then
  return answer("Progressing", nil, "The object is being deleted.")
end
-- A paused object is not reconciled, so its generation is not compared.
if holds("ReconciliationPaused") then
  return answer("Suspended", conditions.ReconciliationPaused)
end
if observed == nil or (obj.metadata.generation or 0) > observed then
  return answer("Progressing", nil, "Waiting for the operator.")
end
if holds("Stalled") then
  return answer("Degraded", conditions.Stalled)
end
if holds("Ready") then
  return answer("Healthy", ready)
end
if holds("Reconciling") then
  return answer("Progressing", conditions.Reconciling)
end
if ready ~= nil and ready.status == "False" then
  return answer("Degraded", ready)
end
return answer("Progressing", ready, "Waiting for the operator.")
