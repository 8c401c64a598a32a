/** What starts the `svc` command for whoever names it by this file; `main.mjs` is the quicker way. */
import "./main.mjs"
