// What the mock lets each role do: as much of the server's tables as the page asks for.

const ROLES = ["watch", "prompt", "approve", "admin"];
/** What the routes and the modes need, as far as the page uses them. */
const OPERATIONS = { submitPrompt: "prompt", abortSession: "prompt", takeBackPrompt: "prompt", settleAsk: "approve" };
const MODES = { plan: "prompt", deny: "prompt", ask: "prompt", "accept-edits": "approve", listed: "approve", allow: "approve" };

/** What `GET /api/me` says to this role. */
export function me(role) {
  const isEnough = (needed) => ROLES.indexOf(role) >= ROLES.indexOf(needed);
  const rights = (table) => Object.entries(table).map(([name, role]) => ({ name, role, allowed: isEnough(role) }));
  return { id: role === "admin" ? null : "k1", role, operations: rights(OPERATIONS), permissions: rights(MODES) };
}
