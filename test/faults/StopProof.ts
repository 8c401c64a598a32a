/**
 * Stops and deletes Identities while three processes issue tokens, sign requests and start sign-ins for them. A request
 * that begins after the response to the stop or the deletion gets nothing, and a code that was issued before is worthless.
 */
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { deploy, type Process, until } from "../harness/Deployment.ts"
import type { Row } from "../harness/Report.ts"
import { authorizationUrl, challengeOf, registerClient, tokenCall, verifierOf } from "../oauth/Consent.ts"

/** Requests that begin after each response. */
const tries = 25
/** Codes of the time before a response that are exchanged after it. */
const codesKept = 6
const times = Number(process.env["FAULTS_TIMES"] ?? 20)

const redirect = "https://shop.example/callback"
const verifier = verifierOf()

/** Requests a token, a signature or a sign-in in turn. Returns the response. */
const request = async (base: string, handle: string, token: string, client: string, at: number) => {
  const asked = [
    ["tokens", { audience: "api.example", algorithm: "ES256" }],
    ["signatures", { method: "GET", url: "https://shop.example/" }],
    [
      "sign-ins",
      {
        authorization_url: authorizationUrl(base, {
          client,
          redirect,
          challenge: challengeOf(verifier),
          more: { scope: "openid" },
        }).href,
      },
    ],
  ] as const
  const [what, body] = asked[at % asked.length]!
  return call(base, "POST", `/api/identities/${handle}/${what}`, { token, body })
}

/** Exchanges the code in the address of the site, at any process. Returns the status. */
const exchange = async (base: string, client: string, back: string) => {
  const code = new URL(back).searchParams.get("code")!
  const form = { grant_type: "authorization_code", client_id: client, redirect_uri: redirect, code }
  return (await tokenCall(base, { ...form, code_verifier: verifier })).status
}

export const stopProof = async (): Promise<Row> => {
  const deployment = await deploy()
  try {
    const [first, ...others] = [
      await deployment.start(["actors", "api"]),
      await deployment.start(["api"]),
      await deployment.start(["api"]),
    ]
    const processes: ReadonlyArray<Process> = [first!, ...others]
    const baseOf = (at: number) => processes[at % processes.length]!.base
    const { session } = await signUp(first!.base)
    let before = 0
    let asked = 0
    let afterStop = 0
    let afterDeletion = 0
    let exchanged = 0
    let exchangedLate = 0
    let client = ""
    /** Codes that no site has exchanged yet, as addresses of the site. */
    let codes: Array<string> = []
    /** Requests of all processes that begin now, and exchanges of the newest codes. */
    const late = async (handle: string) => {
      const kept = codes.splice(0).slice(-codesKept)
      const found = await Promise.all(
        Array.from({ length: tries }, (_, at) => request(baseOf(at), handle, session, client, at + (asked % 3))),
      )
      const used = await Promise.all(kept.map((back, at) => exchange(baseOf(at + 1), client, back)))
      asked += found.length
      exchangedLate += used.filter((status) => status === 200).length
      return found.filter(({ status }) => status === 201).length
    }
    /** One request of a caller; every second code is exchanged. */
    const make = async (handle: string, at: number, n: number) => {
      const { status, body } = await request(baseOf(at), handle, session, client, n)
      if (status !== 201) return
      before++
      if (body.redirect_url === undefined) return
      codes.push(body.redirect_url)
      if (codes.length % 2 === 0 && (await exchange(baseOf(at), client, codes.pop()!)) === 200) exchanged++
    }
    for (let round = 0; round < times; round++) {
      const { handle } = await makeIdentity(first!.base, session)
      client = (await registerClient(first!.base, [redirect], `Shop ${round}`)).body["client_id"]
      codes = []
      const path = `/api/identities/${handle}`
      const change = (outgoing: string) =>
        call(baseOf(round), "PATCH", `${path}/mail`, { token: session, body: { outgoing } })
      let isRunning = true
      const callers = Array.from({ length: processes.length * 2 }, async (_, at) => {
        for (let n = at; isRunning; n++) await make(handle, at, n)
      })
      try {
        const seen = before
        await until("proofs are made", async () => before > seen + processes.length, 30)
        await until("the stop", async () => (await change("stopped")).status === 200, 30)
        afterStop += await late(handle)
        await until("the end of the stop", async () => (await change("active")).status === 200, 30)
        const again = before
        await until("proofs are made again", async () => before > again + processes.length, 30)
        await until(
          "the deletion",
          async () => (await call(baseOf(round + 1), "DELETE", path, { token: session })).status < 300,
          30,
        )
        afterDeletion += await late(handle)
      } finally {
        isRunning = false
        await Promise.all(callers)
      }
    }
    return {
      id: "stop-proof",
      ok:
        afterStop === 0 &&
        afterDeletion === 0 &&
        exchangedLate === 0 &&
        exchanged > 0 &&
        before > times &&
        asked === times * tries * 2,
      what: `${times} Identities stopped and deleted while three processes issue tokens, sign requests and start sign-ins for them`,
      figures: {
        "made before": before,
        "requested afterwards": asked,
        "made after the stop returned": afterStop,
        "made after the deletion returned": afterDeletion,
        "codes exchanged before": exchanged,
        "codes exchanged afterwards": exchangedLate,
      },
    }
  } finally {
    await deployment.stop()
  }
}
