/** The `svc` command. */
import "effect/schema/SchemaJITCompiler/enable"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect } from "effect"
import { program } from "./CommandLine.ts"
import * as Logging from "./Logging.ts"
import { guardOutput } from "./Output.ts"
import { endWithParent } from "./ParentProcess.ts"

const svc = await program(process.argv.slice(2))

endWithParent()
guardOutput()
svc.pipe(
  Effect.provide(NodeServices.layer),
  Effect.provide(Logging.layer),
  NodeRuntime.runMain({ disableErrorReporting: false }),
)
