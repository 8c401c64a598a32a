/** High limits for tests that are not about limits. */
export const unlimited = Object.fromEntries(
  "CALLS IDENTITY_CREATE HANDLE_CHECK PROFILE HITS CONTACT MAGIC_LINK DEVICE OAUTH_REGISTER OAUTH_AUTHORIZE OAUTH_TOKEN OAUTH_TOKEN_FAILED OAUTH_DOCUMENT"
    .split(" ")
    .map((name) => [`SVC_LIMIT_${name}`, "1000000000"]),
)
