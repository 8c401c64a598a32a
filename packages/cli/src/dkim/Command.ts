/** `svc dkim` prints the DNS records of the keys that sign outgoing mail; `svc dkim rotate` creates new keys. */
import { keysCommand } from "../KeysCommand.ts"

export const command = keysCommand({
  name: "dkim",
  description: "Print the DNS records of the keys that sign outgoing mail.",
  rotation: "Create new keys; the old keys sign until the new ones are published.",
  load: () => import("./Keys.ts"),
})
