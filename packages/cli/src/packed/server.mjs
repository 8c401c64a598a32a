#!/usr/bin/env node
// `svc-server`: the `svc` command with PostgreSQL and Node for the service. `serve` is the default command.
const [, , first] = process.argv
if (first === undefined || first.startsWith("--role")) process.argv.splice(2, 0, "serve")
await import("@agent-identity/cli/main")
