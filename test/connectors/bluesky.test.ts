/** All suites share one network, because starting it takes longer than most of the suites. */
import { afterAll, beforeAll, describe } from "vitest"
import * as Actor from "./bluesky/Actor.ts"
import * as Connecting from "./bluesky/Connecting.ts"
import type { Context } from "./bluesky/Context.ts"
import * as Disclosure from "./bluesky/Disclosure.ts"
import * as Faults from "./bluesky/Faults.ts"
import * as Polling from "./bluesky/Polling.ts"
import * as Messages from "./bluesky/Messages.ts"
import * as OAuth from "./bluesky/OAuth.ts"
import * as Posting from "./bluesky/Posting.ts"
import * as Reading from "./bluesky/Reading.ts"
import * as Sessions from "./bluesky/Sessions.ts"
import * as MisbehavingServer from "./bluesky/MisbehavingServer.ts"
import { installed } from "./network/Installation.ts"
import { openNetwork } from "./network/Network.ts"
import { openRig } from "./network/Rig.ts"

const there = await installed()

describe.skipIf("missing" in there)("Bluesky", () => {
  const context = {} as Context

  beforeAll(async () => {
    context.network = await openNetwork("packages" in there ? there.packages : "", { rateLimitsEnabled: true })
    context.rig = await openRig(context.network)
    context.ada = await context.network.person("ada.test")
    context.grace = await context.network.person("grace.test")
    context.alan = await context.network.person("alan.test")
  })
  afterAll(async () => {
    await context.rig?.close()
    await context.network?.close()
  })

  Connecting.suite(context)
  Posting.suite(context)
  Reading.suite(context)
  Polling.suite(context)
  Messages.suite(context)
  Disclosure.suite(context)
  Sessions.suite(context)
  OAuth.suite(context)
  Faults.suite(context)
  Actor.suite(context)
  MisbehavingServer.suite(context)
})
