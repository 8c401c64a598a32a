/** The destinations of the navigation, with the letter that opens each after `g`. */
import type { IconName } from "../ui/Icon.tsx"

export const places = [
  { to: "/", key: "home", icon: "home", letter: "h" },
  { to: "/identities", key: "identities", icon: "agents", letter: "i" },
  { to: "/activity", key: "activity", icon: "activity", letter: "a" },
  { to: "/vault", key: "vault", icon: "vault", letter: "v" },
  { to: "/keys", key: "keys", icon: "key", letter: "k" },
  { to: "/settings", key: "settings", icon: "settings", letter: "s" },
] as const satisfies ReadonlyArray<{ to: string; key: string; icon: IconName; letter: string }>
