/** The network, platform and people that all Bluesky suites share. */
import { randomUUID } from "node:crypto"
import type { NewPost } from "@svc/cluster/connectors/platforms/Platform"
import type { Network, Person } from "../network/Network.ts"
import type { Rig } from "../network/Rig.ts"

/** Its members are set before the first test. */
export interface Context {
  network: Network
  rig: Rig
  ada: Person
  grace: Person
  alan: Person
}

export const connect = ({ rig }: Context, person: Person, dm = true) =>
  person.appPassword({ dm }).then((password) => rig.connect(person.handle, password))

/** Returns a record of the person's repository. */
export const recordAt = async (
  { ada }: Context,
  uri: string,
): Promise<{ readonly cid: string; readonly value: any }> => {
  const [repo, collection, rkey] = uri.slice("at://".length).split("/") as [string, string, string]
  const { cid, value } = (await ada.agent.com.atproto.repo.getRecord({ repo, collection, rkey })).data
  return { cid: cid!, value }
}

/** Returns a version 7 UUID of the current time. */
export const command = () => {
  const millis = Date.now().toString(16).padStart(12, "0")
  return `${millis.slice(0, 8)}-${millis.slice(8)}-7${randomUUID().slice(15)}`
}

export const post = (text: string, more: Partial<NewPost> = {}): NewPost => ({
  text,
  replyTo: undefined,
  options: {},
  command: command(),
  again: false,
  ...more,
})
