/** Replaces the service for direct messages (`chat.bsky.convo`): conversations of two people and their log, in memory. */
import { open, Refusal, type Service } from "./Service.ts"

interface Message {
  readonly id: string
  readonly rev: string
  readonly text: string
  readonly sender: { readonly did: string }
  readonly sentAt: string
  readonly replyTo?: object
}

interface Convo {
  readonly id: string
  readonly members: ReadonlyArray<string>
  readonly messages: Array<Message>
}

export interface Chat extends Service {
  /** Stores the message of the next `sendMessage`, but loses the response. */
  loseNextAnswer: () => void
}

export const openChat = async (handleOf: (did: string) => Promise<string>): Promise<Chat> => {
  const convos: Array<Convo> = []
  const log: Array<{ readonly rev: string; readonly convo: Convo; readonly message: Message }> = []
  let losing = false
  let last = 0
  const nextRev = () => String(++last).padStart(13, "2")

  const profile = async (did: string) => ({ did, handle: await handleOf(did) })
  const shown = (message: Message) => ({ $type: "chat.bsky.convo.defs#messageView", ...message })
  const view = async ({ id, members, messages }: Convo) => ({
    id,
    rev: messages.at(-1)?.rev ?? "0",
    members: await Promise.all(members.map(profile)),
    muted: false,
    unreadCount: 0,
    status: "accepted",
    ...(messages.length === 0 ? {} : { lastMessage: shown(messages.at(-1)!) }),
  })

  const own = (did: string, id: string | null) => {
    const found = convos.find((convo) => convo.id === id && convo.members.includes(did))
    if (found === undefined) throw new Refusal(400, "InvalidConvo", "Convo not found")
    return found
  }

  const service = await open("bsky_chat", async ({ method, query, body, did }) => {
    switch (method) {
      case "chat.bsky.convo.listConvos": {
        const limit = Number(query.get("limit") ?? 50)
        const from = Number(query.get("cursor") ?? 0)
        const all = convos
          .filter(({ members }) => members.includes(did))
          .sort((one, other) => ((one.messages.at(-1)?.rev ?? "") < (other.messages.at(-1)?.rev ?? "") ? 1 : -1))
        const page = await Promise.all(all.slice(from, from + limit).map(view))
        return { convos: page, ...(all.length > from + limit ? { cursor: String(from + limit) } : {}) }
      }
      case "chat.bsky.convo.getConvoForMembers": {
        const members = [...new Set([did, ...query.getAll("members")])].sort()
        let found = convos.find((convo) => convo.members.join() === members.join())
        if (found === undefined) convos.push((found = { id: `convo${convos.length + 1}`, members, messages: [] }))
        return { convo: await view(found) }
      }
      case "chat.bsky.convo.getConvo":
        return { convo: await view(own(did, query.get("convoId"))) }
      case "chat.bsky.convo.getMessages": {
        const convo = own(did, query.get("convoId"))
        return {
          messages: convo.messages
            .map(shown)
            .toReversed()
            .slice(0, Number(query.get("limit") ?? 50)),
        }
      }
      case "chat.bsky.convo.sendMessage": {
        const convo = own(did, body.convoId)
        const { text, replyTo } = body.message
        const answered = replyTo && convo.messages.find(({ id }) => id === replyTo.messageId)
        if (replyTo && answered === undefined) throw new Refusal(400, "ReplyTargetNotFound", "No such message")
        const rev = nextRev()
        const sentAt = new Date().toISOString()
        const message = {
          id: `m${rev}`,
          rev,
          text,
          sender: { did },
          sentAt,
          ...(answered ? { replyTo: shown(answered) } : {}),
        }
        convo.messages.push(message)
        log.push({ rev, convo, message })
        if (losing) {
          losing = false
          throw new Refusal(502, "UpstreamFailure", "The answer was lost")
        }
        return message
      }
      case "chat.bsky.convo.getLog": {
        const cursor = query.get("cursor")
        const mine = log.filter(({ convo }) => convo.members.includes(did))
        if (cursor === null) return { cursor: mine.at(-1)?.rev ?? "0", logs: [] }
        const page = mine.filter(({ rev }) => rev > cursor).slice(0, 20)
        return {
          cursor: page.at(-1)?.rev ?? cursor,
          logs: await Promise.all(
            page.map(async ({ rev, convo, message }) => ({
              $type: "chat.bsky.convo.defs#logCreateMessage",
              rev,
              convoId: convo.id,
              message: shown(message),
              relatedProfiles: [await profile(message.sender.did)],
            })),
          ),
        }
      }
      default:
        throw new Refusal(501, "MethodNotImplemented", `The test network has no ${method}.`)
    }
  })
  return { ...service, loseNextAnswer: () => (losing = true) }
}
