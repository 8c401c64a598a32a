/** The methods of Bluesky's servers. Each `Agent` of the library parses their definitions, which takes 7 ms, so this shares them. */
import { AppNS, ChatNS, ComNS, lexicons } from "@atproto/api"
import { type FetchHandler, XrpcClient } from "@atproto/xrpc"

export class Client extends XrpcClient {
  readonly com = new ComNS(this)
  readonly app = new AppNS(this)
  readonly chat = new ChatNS(this)

  constructor(fetch: FetchHandler) {
    super(fetch, lexicons)
  }
}
