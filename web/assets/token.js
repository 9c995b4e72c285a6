// The token: it comes once in the fragment of the address, is kept for this tab, and is never
// part of a request's address.

const KEY = "linkspan.token";

/** Takes the token out of the address, if it holds one; true if it did. */
export function take_token() {
  const match = /(?:^#|&)token=([^&/]+)/.exec(location.hash);
  if (!match?.[1]) return false;
  sessionStorage.setItem(KEY, decodeURIComponent(match[1]));
  const route = /\/s\/[^&]+/.exec(location.hash)?.[0];
  history.replaceState(null, "", location.pathname + (route ? `#${route}` : ""));
  return true;
}

export function token() {
  return sessionStorage.getItem(KEY);
}

/** @param {string} value */
export function set_token(value) {
  sessionStorage.setItem(KEY, value);
}

export function forget_token() {
  sessionStorage.removeItem(KEY);
}
