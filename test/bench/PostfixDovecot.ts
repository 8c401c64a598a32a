/**
 * The reference for incoming mail: Postfix delivering to Dovecot over LMTP into Maildirs, both with their default fsync
 * settings. A message counts when it is in its Maildir, because Postfix replies 250 earlier than that.
 */
import { existsSync, readdirSync, rmSync } from "node:fs"
import * as path from "node:path"
import { startPostfix } from "../faults/Postfix.ts"
import { until } from "../harness/Deployment.ts"
import { dovecot } from "./Dovecot.ts"
import { type Drive, smtp } from "./Load.ts"
import { millisOfFamily } from "./Processes.ts"
import type { Subject } from "./Turns.ts"
import { has } from "../harness/Programs.ts"

export interface PostfixDovecot {
  /** Sends messages to these recipients, whose domain is mail.localhost, over that many connections. */
  readonly subject: (recipients: ReadonlyArray<string>, connections: number) => Subject
  /** CPU time of both servers so far, in microseconds per message. */
  readonly cpu: () => number
  readonly stop: () => void
}

/** Starts both; returns undefined if one of them is not installed. */
export const postfixDovecot = async (): Promise<PostfixDovecot | undefined> => {
  if (!has("postfix")) return undefined
  const store = await dovecot("lmtp")
  if (store === undefined) return undefined
  try {
    const postfix = await startPostfix(() => 0, {
      transport_maps: "",
      virtual_mailbox_domains: "mail.localhost",
      virtual_mailbox_maps: "",
      virtual_transport: `lmtp:inet:127.0.0.1:${store.port}`,
    })
    const used = { millis: 0, letters: 0 }
    const cpu = () => millisOfFamily(postfix.pid) + millisOfFamily(store.pid)
    const drive =
      (deliver: Drive, delivered: () => number): Drive =>
      async (seconds) => {
        const start = performance.now()
        const before = cpu()
        const load = await deliver(seconds)
        await until("the last letter's Maildir", () => delivered() >= load.done, 120)
        used.millis += cpu() - before
        used.letters += load.done
        return { ...load, seconds: (performance.now() - start) / 1000 }
      }
    return {
      cpu: () => (used.millis * 1000) / used.letters,
      subject: (recipients, connections) => {
        const boxes = recipients.map((address) => path.join(store.home, address.split("@", 1)[0]!, "new"))
        const letters = (box: string) => (existsSync(box) ? readdirSync(box) : [])
        return {
          drive: drive(smtp(postfix.port, recipients, connections), () =>
            boxes.reduce((sum, box) => sum + letters(box).length, 0),
          ),
          // Removes earlier messages, so that only those of one slice are counted.
          prepare: async () => {
            for (const box of boxes) for (const name of letters(box)) rmSync(path.join(box, name))
          },
        }
      },
      stop: () => {
        postfix.stop()
        store.stop()
      },
    }
  } catch (error) {
    store.stop()
    throw error
  }
}
