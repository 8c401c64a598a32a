import { ProvisioningSteps } from "@svc/cluster/identity/Provisioning"
import { StepFailed } from "@svc/cluster/saga/Step"
import { Effect, Layer } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { call, newHandle, signUp } from "../harness/Client.ts"
import { eventually, startService, type TestService } from "../harness/Service.ts"

let service: TestService
let broken = true
let session: string

beforeAll(async () => {
  service = await startService({
    parts: {
      // The port through which the saga works, with a card step that can be made to fail.
      provisioningSteps: (options) =>
        Layer.effect(
          ProvisioningSteps,
          Effect.map(Effect.service(ProvisioningSteps), (steps) => ({
            ...steps,
            card: (subject) =>
              broken
                ? Effect.fail(new StepFailed({ message: "the card printer is out of paper" }))
                : steps.card(subject),
          })),
        ).pipe(Layer.provide(ProvisioningSteps.layer(options))),
    },
  })
  session = (await signUp(service.base)).session
})
afterAll(() => service.stop())

const read = (handle: string) => call(service.base, "GET", `/api/identities/${handle}`, { token: session })

describe("a saga whose step fails", () => {
  it("is retried, shows why, refuses what needs a ready Identity, and goes on from the failed step", async () => {
    const handle = newHandle()
    await call(service.base, "POST", "/api/identities", { token: session, body: { handle } })
    const retrying = await eventually(
      () => read(handle),
      ({ body }) => body.saga.steps[2].status === "retrying",
    )
    expect(retrying.body).toMatchObject({ status: "provisioning", saga: { status: "running" } })
    expect(retrying.body.saga.steps[2]).toMatchObject({ name: "card", error: "the card printer is out of paper" })
    expect(retrying.body.saga.steps.map(({ status }: { status: string }) => status)).toEqual([
      "done",
      "done",
      "retrying",
      "pending",
    ])
    const busy = await call(service.base, "DELETE", `/api/identities/${handle}`, { token: session })
    expect([busy.status, busy.body.code, busy.body.agent_hint]).toEqual([409, "identity_busy", "wait"])
    const early = await call(service.base, "POST", `/api/identities/${handle}/webhooks`, {
      token: session,
      body: { url: "http://127.0.0.1:9/", event_types: ["*"] },
    })
    expect([early.status, early.body.code, early.body.agent_hint]).toEqual([409, "identity_not_ready", "wait"])
    broken = false
    const ready = await eventually(
      () => read(handle),
      ({ body }) => body.status === "ready",
    )
    expect(ready.body.saga.steps[2]).toMatchObject({ status: "done", error: null })
    expect(ready.body.saga.steps[2].attempts).toBeGreaterThan(1)
    broken = true
  })

  it("has failed after six tries (31 s), raises identity.failed, and is retried on demand", async () => {
    const handle = newHandle()
    await call(service.base, "POST", "/api/identities", { token: session, body: { handle } })
    const failed = await eventually(
      () => read(handle),
      ({ body }) => body.status === "failed",
      60,
    )
    expect(failed.body.saga).toMatchObject({ status: "failed" })
    expect(failed.body.saga.steps[2]).toMatchObject({ status: "failed", attempts: 6 })
    expect(failed.body.saga.steps[3]).toMatchObject({ status: "pending", attempts: 0 })
    await eventually(
      () => call(service.base, "GET", `/api/events?type=identity.failed&handle=${handle}`, { token: session }),
      ({ body }) => body.events.length === 1 && body.events[0].data.step === "card",
    )
    broken = false
    const retried = await call(service.base, "POST", `/api/identities/${handle}/retry`, { token: session })
    expect([retried.status, retried.body.handle]).toEqual([202, handle])
    const ready = await eventually(
      () => read(handle),
      ({ body }) => body.status === "ready",
    )
    expect(ready.body.saga.steps[0].attempts).toBe(1)
    const again = await call(service.base, "POST", `/api/identities/${handle}/retry`, { token: session })
    expect([again.status, again.body.status]).toEqual([202, "ready"])
    broken = true
  }, 90_000)
})
