/** The disclosure in an account's profile that the account is automated. */
import { describe, expect, it } from "vitest"
import type { Person } from "../network/Network.ts"
import { disclosure } from "../network/Rig.ts"
import { connect, type Context } from "./Context.ts"

export const suite = (context: Context) =>
  describe("disclosure", () => {
    const collection = "app.bsky.actor.profile"
    const write = (person: Person, record: object) =>
      person.agent.com.atproto.repo.putRecord({
        repo: person.did,
        collection,
        rkey: "self",
        record: { $type: collection, ...record },
      })
    const profile = async (person: Person) =>
      (await person.agent.com.atproto.repo.getRecord({ repo: person.did, collection, rkey: "self" })).data.value

    it("adds the label and the line, keeps everything else, and reverts what it added", async () => {
      const rosa = await context.network.person("rosa.test")
      const labels = { $type: "com.atproto.label.defs#selfLabels", values: [{ val: "!no-unauthenticated" }] }
      const before = { displayName: "Rosa", description: "I write.", labels, unknownToUs: { kept: [1, 2] } }
      await write(rosa, before)
      const { session } = await connect(context, rosa)
      const changed = await context.rig.run(context.rig.platform.disclose(session))
      expect(await profile(rosa)).toEqual({
        $type: collection,
        ...before,
        description: `I write.\n\n${disclosure}`,
        labels: { ...labels, values: [{ val: "!no-unauthenticated" }, { val: "bot" }] },
      })
      expect((await context.rig.run(context.rig.platform.inspect(session))).disclosed).toBe(true)
      expect(await context.rig.run(context.rig.platform.disclose(session))).toBeUndefined()
      await context.rig.run(context.rig.platform.undisclose(session, changed!))
      expect(await profile(rosa)).toEqual({ $type: collection, ...before })
      expect((await context.rig.run(context.rig.platform.inspect(session))).disclosed).toBe(false)
    })

    it("works without a profile and keeps a label that the owner had set", async () => {
      const vera = await context.network.person("vera.test")
      const { session } = await connect(context, vera)
      const changed = await context.rig.run(context.rig.platform.disclose(session))
      expect(await profile(vera)).toMatchObject({ description: disclosure, labels: { values: [{ val: "bot" }] } })
      await context.rig.run(context.rig.platform.undisclose(session, changed!))
      expect(await profile(vera)).toEqual({ $type: collection })
      await write(vera, { labels: { $type: "com.atproto.label.defs#selfLabels", values: [{ val: "bot" }] } })
      const onlyLine = await context.rig.run(context.rig.platform.disclose(session))
      await context.rig.run(context.rig.platform.undisclose(session, onlyLine!))
      expect(await profile(vera)).toMatchObject({ labels: { values: [{ val: "bot" }] } })
    })

    it("does not truncate a description that has no room for the line", async () => {
      const long = await context.network.person("long.test")
      await write(long, { description: "x".repeat(250) })
      const { session } = await connect(context, long)
      await context.rig.run(context.rig.platform.disclose(session))
      expect(await profile(long)).toMatchObject({ description: "x".repeat(250), labels: { values: [{ val: "bot" }] } })
    })

    it("keeps concurrent changes of the owner", async () => {
      const zora = await context.network.person("zora.test")
      await write(zora, { displayName: "before" })
      const { session } = await connect(context, zora)
      const put = session.http.fetch
      let meanwhile = 1
      const fetch: typeof put = async (input, init) => {
        const url = input instanceof Request ? input.url : String(input)
        if (url.endsWith("com.atproto.repo.putRecord") && meanwhile-- > 0) await write(zora, { displayName: "after" })
        return put(input, init)
      }
      await context.rig.run(context.rig.platform.disclose({ ...session, http: { ...session.http, fetch } }))
      expect(await profile(zora)).toMatchObject({ displayName: "after", labels: { values: [{ val: "bot" }] } })
    })
  })
