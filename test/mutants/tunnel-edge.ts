/** Planted bugs in `packages/tunnel-edge`. */
import type { Mutants } from "./Mutant.ts"

export const tunnelEdge: Mutants = {
  "pipelined-requests-starve-others": {
    file: "tunnel-edge/src/edge/PublicConnection.ts",
    from: "    this.goOn(head, onward)\n    this.yieldTurn()\n",
    to: "    this.goOn(head, onward)\n",
    bug: "requests that one client sends in advance through a Tunnel keep the edge from everybody else",
    tests: ["tunnel/public-http"],
  },
  "end-overtakes-requests": {
    file: "tunnel-edge/src/edge/PublicConnection.ts",
    from: "return this.isYielding ? undefined : this.line.finish()",
    to: "return this.line.finish()",
    bug: "the end of a client that sent requests in advance reaches the agent before the last of them",
    tests: ["tunnel/public-http"],
  },
  "x-real-ip-passes": {
    file: "tunnel-edge/src/protocol/RequestHead.ts",
    from: '  "x-real-ip",\n',
    to: "",
    bug: "X-Real-IP of the client goes through to the agent (spoofed client address)",
    tests: ["tunnel/request-head", "tunnel/public-http", "tunnel/public-http-answers", "tunnel/tunnel"],
  },
  "tunnel-password-passes": {
    file: "tunnel-edge/src/protocol/RequestHead.ts",
    from: 'head.authorization === undefined || ownAuthorization ? ""',
    to: 'head.authorization === undefined ? ""',
    bug: "the Tunnel's own password goes through to the agent",
    tests: ["tunnel/settings", "tunnel/admission", "tunnel/request-head", "tunnel/public-http"],
  },
  "drain-ignores-peers": {
    file: "tunnel-edge/src/edge/Drain.ts",
    from: "connections.size() > 0 || peers.isBusy() || leases.isBusy()",
    to: "connections.size() > 0 || leases.isBusy()",
    bug: "a draining edge does not wait for streams that came from other edges",
    tests: ["tunnel/edges", "tunnel/balancer", "tunnel/leases", "tunnel/link"],
  },
  "requests-lost-from-usage": {
    file: "tunnel-edge/src/edge/Metering.ts",
    from: "              counter.requests += usage.requests\n",
    to: "",
    bug: "requests that could not be written down at once are lost from the usage",
    tests: ["tunnel/metering", "tunnel/hiccup", "limits/transfer"],
  },
  "one-guess-too-many": {
    file: "tunnel-edge/src/edge/Guesses.ts",
    from: "counter.failures < failuresAtMost ? 0",
    to: "counter.failures <= failuresAtMost ? 0",
    bug: "one wrong password more is judged (off by one)",
    tests: ["tunnel/admission", "tunnel/settings", "tunnel/caps"],
  },
  "settings-reach-open-late": {
    file: "tunnel-edge/src/edge/Routes.ts",
    from: "                  options.launch(openings.refresh(canonical))\n",
    to: "",
    bug: "changed Tunnel settings do not reach open connections until the next full look",
    tests: ["tunnel/settings", "tunnel/admission", "tunnel/public-http", "tunnel/edges"],
  },
}
