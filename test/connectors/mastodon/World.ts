/** Accounts and statuses of {@link module:Server}, their visibility, and notifications. */
export interface Account {
  readonly id: string
  readonly username: string
  readonly acct: string
  note: string
  bot: boolean
  disabled: boolean
  readonly notifications: Array<Notification>
}

export interface Status {
  readonly id: string
  readonly uri: string
  readonly account: Account
  readonly text: string
  readonly visibility: string
  readonly parent: Status | undefined
  readonly spoiler: string
  readonly language: string
  readonly sensitive: boolean
  readonly media: ReadonlyArray<object>
  readonly mentioned: ReadonlyArray<Account>
  readonly at: string
}

export interface Notification {
  readonly id: string
  readonly type: "mention" | "favourite"
  readonly status: Status
  readonly account: Account
}

interface Shape {
  readonly visibility: string
  readonly parent: Status | undefined
  readonly spoiler: string
  readonly language: string
  readonly sensitive: boolean
  readonly media: ReadonlyArray<object>
}

const escape = (text: string) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;")

export class World {
  base = ""
  characters = 500
  readonly accounts = new Map<string, Account>()
  readonly statuses = new Map<string, Status>()
  /** Statuses of other servers, which this server fetches when a search requests them. */
  readonly elsewhere = new Map<string, () => Status>()
  /** Called for each notification. */
  told: (account: Account, notification: Notification) => void = () => {}
  private last = 100

  /** Makes an id of a number. All ids have the same length, so their alphabetical order is their order in time. */
  idOf: (n: number) => string = String

  nextId(): string {
    return this.idOf(++this.last)
  }

  join(acct: string, note = ""): Account {
    const account: Account = {
      id: this.nextId(),
      username: acct.split("@")[0]!,
      acct,
      note,
      bot: false,
      disabled: false,
      notifications: [],
    }
    this.accounts.set(acct, account)
    return account
  }

  publish(account: Account, text: string, shape: Partial<Shape> & { readonly uri?: string } = {}): Status {
    const id = this.nextId()
    const host = new URL(this.base).host
    const mentioned = [...text.matchAll(/@([\w.-]+)(?:@([\w.:-]*\w))?/g)].flatMap(([, user, domain]) => {
      const found = this.accounts.get(domain === undefined || domain === host ? user! : `${user}@${domain}`)
      return found === undefined ? [] : [found]
    })
    const status: Status = {
      id,
      uri: shape.uri ?? `${this.base}/users/${account.username}/statuses/${id}`,
      account,
      text,
      visibility: shape.visibility ?? "public",
      parent: shape.parent,
      spoiler: shape.spoiler ?? "",
      language: shape.language ?? "en",
      sensitive: shape.sensitive ?? false,
      media: shape.media ?? [],
      mentioned,
      at: new Date().toISOString(),
    }
    this.statuses.set(id, status)
    for (const one of new Set(mentioned)) {
      if (one !== account) this.notify(one, "mention", status)
    }
    return status
  }

  notify(to: Account, type: Notification["type"], status: Status) {
    const notification: Notification = { id: this.nextId(), type, status, account: status.account }
    to.notifications.push(notification)
    this.told(to, notification)
  }

  isVisible(status: Status, to: Account): boolean {
    if (status.account === to || status.mentioned.includes(to)) return true
    return status.visibility !== "direct" && status.visibility !== "private"
  }

  resolve(q: string, resolve: boolean): Status | undefined {
    const known = [...this.statuses.values()].find(
      ({ uri, id, account }) => q === uri || q === `${this.base}/@${account.username}/${id}`,
    )
    if (known !== undefined || !resolve) return known
    return this.elsewhere.get(q)?.()
  }

  conversations(of: Account): ReadonlyArray<{ readonly id: string; readonly last: Status }> {
    const roots = new Map<Status, Status>()
    for (const status of this.statuses.values()) {
      if (status.visibility !== "direct" || !this.isVisible(status, of)) continue
      let root = status
      while (root.parent !== undefined) root = root.parent
      roots.set(root, status)
    }
    return [...roots].map(([root, last]) => ({ id: root.id, last }))
  }

  context(status: Status, to: Account) {
    const ancestors: Array<Status> = []
    for (let up = status.parent; up !== undefined; up = up.parent) ancestors.unshift(up)
    const descendants = [...this.statuses.values()].filter((one) => {
      for (let up = one.parent; up !== undefined; up = up.parent) if (up === status) return true
      return false
    })
    const shown = (list: ReadonlyArray<Status>) =>
      list.filter((one) => this.isVisible(one, to)).map((one) => this.status(one))
    return { ancestors: shown(ancestors), descendants: shown(descendants) }
  }

  shown(account: Account, own = false) {
    return {
      id: account.id,
      username: account.username,
      acct: account.acct,
      display_name: account.username.toUpperCase(),
      bot: account.bot,
      note: `<p>${escape(account.note)}</p>`,
      url: `${this.base}/@${account.acct}`,
      avatar: `${this.base}/avatar.png`,
      emojis: [],
      fields: [],
      ...(own
        ? { source: { note: account.note, privacy: "public", sensitive: false, language: "en", fields: [] } }
        : {}),
    }
  }

  status(status: Status) {
    const html = escape(status.text)
      .replace(
        /@([\w.-]+(?:@[\w.:-]*\w)?)/g,
        (_, name: string) =>
          `<span class="h-card"><a href="${this.base}/@${name}" class="u-url mention">@<span>${name}</span></a></span>`,
      )
      .replaceAll("\n", "<br />")
    return {
      id: status.id,
      uri: status.uri,
      url: `${this.base}/@${status.account.acct}/${status.id}`,
      account: this.shown(status.account),
      content: `<p>${html}</p>`,
      spoiler_text: status.spoiler,
      visibility: status.visibility,
      sensitive: status.sensitive,
      language: status.language,
      in_reply_to_id: status.parent?.id ?? null,
      in_reply_to_account_id: status.parent?.account.id ?? null,
      created_at: status.at,
      media_attachments: status.media,
      mentions: status.mentioned.map(({ id, username, acct }) => ({
        id,
        username,
        acct,
        url: `${this.base}/@${acct}`,
      })),
      reblog: null,
      tags: [],
      emojis: [],
    }
  }

  notification({ id, type, status, account }: Notification) {
    return { id, type, created_at: status.at, account: this.shown(account), status: this.status(status) }
  }
}
