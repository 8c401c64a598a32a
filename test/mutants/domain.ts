/** Planted bugs in `packages/domain`. */
import type { Mutants } from "./Mutant.ts"

export const domain: Mutants = {
  "rotation-keeps-networks": {
    file: "domain/src/account/KeyRights.ts",
    from: "const refused = exceeds(maker, { scopes, networks, expiresAt })",
    to: "const refused = exceeds(maker, { scopes, networks: maker.networks, expiresAt })",
    bug: "a key bound to a network rotates a key that is bound to none",
    tests: ["api/credentials"],
  },
  "write-scope-loosens": {
    file: "domain/src/tunnel/TunnelApi.ts",
    from: "          allowed_networks: always,\n",
    to: "",
    bug: "a key with tunnel:write opens a Tunnel to everybody",
    tests: ["api/rights"],
  },
  "network-widened": {
    file: "domain/src/account/KeyRights.ts",
    from: "return coversNetworks(maker.networks, rights.networks)",
    to: "return coversNetworks(rights.networks, maker.networks)",
    bug: "a key bound to a network makes one for a wider network (arguments swapped)",
    tests: ["api/credentials", "api/scopes", "account/key-ends", "api/account", "api/policy"],
  },
  "star-from-narrow": {
    file: "domain/src/account/Scope.ts",
    from: "scopes.all || (!others.all && [...others.held].every((one) => scopes.held.has(one)))",
    to: "scopes.all || [...others.held].every((one) => scopes.held.has(one))",
    bug: "any key that may make keys makes one with `*` (empty set is included in all)",
    tests: ["api/scopes", "api/credentials", "account/devices", "oauth/consent", "api/account"],
  },
  "redirect-to-tunnel": {
    file: "domain/src/oauth/Redirect.ts",
    from: "    name === tunnels ||\n    name.endsWith(`.${tunnels}`)\n",
    to: "    name === tunnels\n",
    bug: "an agent's Tunnel host may be the redirect of an app (collects codes)",
    tests: ["oauth/redirects", "oauth/hostile-clients", "oauth/hostile", "oauth/confusion"],
  },
  "key-ends-in-exactly": {
    file: "domain/src/account/KeyRights.ts",
    from: ".find((at) => at > now)",
    to: ".find((at) => at >= now)",
    bug: "a key made for exactly 7 days (or 1 day) is told to end at once (off by one)",
    tests: ["domain/key-ends"],
  },
  "reply-drops-authors-fields": {
    file: "domain/src/mail/TextReply.ts",
    from: "let isProven = isDivided",
    to: "let isProven = true",
    bug: "text_reply drops what an author wrote below lines such as From: Berlin",
    tests: ["mail/text-reply"],
  },
  "fold-lower-first": {
    file: "domain/src/mail/SearchText.ts",
    from: '.normalize("NFKD")\n        .toLowerCase()',
    to: '.toLowerCase()\n        .normalize("NFKD")',
    bug: "stylised capital letters are not found",
    tests: ["mail/search-text"],
  },
  "handle-claimed-with-sign": {
    file: "domain/src/handles/Handle.ts",
    from: "if (!/^[A-Za-z0-9-]*$/.test(given)) {",
    to: "if (!/^@?[A-Za-z0-9-]*$/.test(given)) {",
    bug: "a Handle can be claimed with a leading @",
    tests: ["domain/handles", "api/identities"],
  },
  "filter-day-rolls-over": {
    file: "domain/src/Rfc3339.ts",
    from: "    ? isCalendarDay(text)\n      ? Date.parse(`${text}T00:00:00Z`)\n      : undefined\n",
    to: "    ? Date.parse(`${text}T00:00:00Z`)\n",
    bug: "a filter of February 31 is March 3",
    tests: ["domain/times", "api/problems"],
  },
}
