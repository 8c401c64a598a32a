import { parseMasterKeys } from "@svc/cluster/sealing/Sealing"
import { Effect } from "effect"

export const MasterKeysForTests = () => Effect.runPromise(parseMasterKeys(Buffer.alloc(32, 7).toString("base64")))
