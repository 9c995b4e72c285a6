// The token: it comes once in the fragment of the address and is never part of a request's address.
//
// A tab keeps the token it was opened with. Once the server has accepted it, the browser remembers it
// for this origin, so that a new tab, a bookmark or a restarted browser needs no link. Signing out
// forgets it in every tab.

const KEY = "linkspan.token";
/** Changed to tell the other tabs. */
const SIGNED_OUT = "linkspan.signed-out";

/** Takes the token out of the address, if it holds one; true if it did. */
export function takeToken() {
  const match = /(?:^#|&)token=([^&/]+)/.exec(location.hash);
  if (!match?.[1]) return false;
  setToken(decodeURIComponent(match[1]));
  const route = /\/s\/[^&]+/.exec(location.hash)?.[0];
  history.replaceState(null, "", location.pathname + (route ? `#${route}` : ""));
  return true;
}

export function token() {
  return sessionStorage.getItem(KEY) ?? localStorage.getItem(KEY);
}

/** @param {string} value */
export function setToken(value) {
  sessionStorage.setItem(KEY, value);
}

/** The server has accepted it. */
export function rememberToken() {
  const value = token();
  if (value !== null && localStorage.getItem(KEY) !== value) localStorage.setItem(KEY, value);
}

/** The server refuses it; true if the browser knows another one. */
export function dropToken() {
  const refused = token();
  sessionStorage.removeItem(KEY);
  if (localStorage.getItem(KEY) === refused) localStorage.removeItem(KEY);
  return token() !== null;
}

/** Forgets it, in every tab. */
export function forgetToken() {
  sessionStorage.removeItem(KEY);
  localStorage.removeItem(KEY);
  localStorage.setItem(SIGNED_OUT, new Date().toISOString());
}

/** Calls back when the server has accepted a token in another tab. @param {() => void} act */
export function onSignedIn(act) {
  addEventListener("storage", (it) => it.key === KEY && it.newValue !== null && act());
}

/** Calls back when another tab has signed out. @param {() => void} act */
export function onSignedOut(act) {
  addEventListener("storage", (it) => {
    if (it.key !== SIGNED_OUT) return;
    sessionStorage.removeItem(KEY);
    act();
  });
}
