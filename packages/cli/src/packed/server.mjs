#!/usr/bin/env node
// `svc-server`: the `svc` command with what the service runs on, PostgreSQL and Node, beside it. Without a command it serves.
const [, , first] = process.argv
if (first === undefined || first.startsWith("--role")) process.argv.splice(2, 0, "serve")
await import("svc/main")
