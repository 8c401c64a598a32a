/** `svc issuer` prints the keys that sign identity tokens; `svc issuer rotate` creates new keys. */
import { keysCommand } from "../KeysCommand.ts"

export const command = keysCommand({
  name: "issuer",
  description: "Print the keys that sign identity tokens.",
  rotation: "Create new keys; they sign after a day, when verifiers know them.",
  load: () => import("./Keys.ts"),
})
