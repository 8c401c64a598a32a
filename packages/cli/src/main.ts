/** Starts the `svc` command for callers that name this file; `main.mjs` starts faster. */
import "./main.mjs"
