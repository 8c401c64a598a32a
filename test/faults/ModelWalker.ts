/**
 * A caller with random operations on its own resources, whose results are compared with an in-memory model. A request
 * that was interrupted or asked to wait is repeated like a client would; only then is its outcome known.
 */
import { setTimeout as sleep } from "node:timers/promises"
import { isDeepStrictEqual } from "node:util"
import { type ApiResponse, call } from "../harness/Client.ts"
import { randomBelow } from "./Random.ts"

interface Hook {
  description: string | null
  status: "active" | "disabled"
}

interface Asked {
  readonly method: string
  readonly path: string
  readonly body?: unknown
  readonly headers?: Record<string, string>
}

/** The service's result differs from the model's. */
export class ModelMismatch extends Error {}

const url = "http://127.0.0.1:9/"

export class Walker {
  operations = 0
  repeats = 0
  readonly #secrets = new Map<string, string>()
  readonly #hooks = new Map<string, Hook>()
  readonly #allowed = new Set<string>()
  readonly #draw: (below: number) => number
  readonly #name: string
  readonly #own: string
  readonly #token: string
  readonly #base: () => string

  constructor(seed: number, handle: string, token: string, base: () => string) {
    this.#draw = randomBelow(seed)
    this.#name = `${handle}.${seed}`
    this.#own = `/api/identities/${handle}`
    this.#token = token
    this.#base = base
  }

  #differs(what: string, found: unknown, wanted: unknown): never {
    throw new ModelMismatch(
      `operation ${this.operations} of ${this.#name}: ${what} is ${JSON.stringify(found)}, wanted ${JSON.stringify(wanted)}`,
    )
  }

  /** Repeats a request until it has a definite response; also returns whether it was repeated. */
  async #ask({
    method,
    path,
    body,
    headers,
  }: Asked): Promise<{ readonly answer: ApiResponse; readonly repeated: boolean }> {
    for (let repeated = false; ; repeated = true) {
      try {
        const answer = await call(this.#base(), method, path, {
          token: this.#token,
          ...(body === undefined ? {} : { body }),
          ...(headers === undefined ? {} : { headers }),
        })
        if (answer.status !== 503) return { answer, repeated }
        if (answer.body?.agent_hint !== "wait") this.#differs(`the hint of ${method} ${path}`, answer.body, "wait")
      } catch (error) {
        if (error instanceof ModelMismatch) throw error
      }
      this.repeats++
      await sleep(50)
    }
  }

  /** Expects a status; `otherwise` if the request was repeated and its first attempt had taken effect. */
  async #expect(
    request: Asked,
    wanted: ReadonlyArray<number>,
    otherwise: ReadonlyArray<number> = [],
  ): Promise<ApiResponse> {
    const { answer, repeated } = await this.#ask(request)
    const allowed = repeated ? [...wanted, ...otherwise] : wanted
    if (!allowed.includes(answer.status)) {
      this.#differs(`${request.method} ${request.path}`, `${answer.status} ${answer.body?.code ?? ""}`, allowed)
    }
    return answer
  }

  #pick<A>(from: Iterable<A>): A | undefined {
    const all = [...from]
    return all[this.#draw(Math.max(1, all.length))]
  }

  async #secret() {
    const name = `model.${this.#name}.${this.#draw(12)}`
    const path = `/api/vault/secrets/${name}`
    const known = this.#secrets.get(name)
    switch (this.#draw(4)) {
      case 0:
      case 1: {
        const value = `value ${this.#draw(1_000_000)}`
        await this.#expect({ method: "PUT", path, body: { value } }, [200, 201])
        this.#secrets.set(name, value)
        return
      }
      case 2:
        await this.#expect({ method: "DELETE", path }, [known === undefined ? 404 : 204], [404])
        this.#secrets.delete(name)
        return
      default: {
        const { body } = await this.#expect({ method: "GET", path: `${path}/value` }, [known === undefined ? 404 : 200])
        if (known !== undefined && body.value !== known) this.#differs(name, body.value, known)
      }
    }
  }

  async #hook() {
    const id = this.#pick(this.#hooks.keys())
    const kind = this.#draw(4)
    if (id === undefined || (kind === 0 && this.#hooks.size < 5)) {
      const description = `hook ${this.#draw(1_000_000)}`
      const headers = { "idempotency-key": `${this.#name}-${this.operations}` }
      const body = { url, event_types: ["email.sent"], description }
      const request = { method: "POST", path: `${this.#own}/webhooks`, body, headers }
      // The secret is shown once; a repeated request returns the location of the existing resource.
      const made = await this.#expect(request, [201], [409])
      const at = made.status === 201 ? made.body.id : made.headers.get("location")?.split("/").at(-1)
      if (at === undefined) this.#differs("the place of a Webhook", made.body, "an id")
      this.#hooks.set(at, { description, status: "active" })
      return
    }
    const path = `${this.#own}/webhooks/${id}`
    const known = this.#hooks.get(id)!
    if (kind === 1) {
      await this.#expect({ method: "DELETE", path }, [204], [404])
      this.#hooks.delete(id)
    } else if (kind === 2) {
      const changed: Hook = {
        description: this.#draw(5) === 0 ? null : `changed ${this.#draw(1_000_000)}`,
        status: this.#draw(2) === 0 ? "active" : "disabled",
      }
      await this.#expect({ method: "PATCH", path, body: changed }, [200])
      this.#hooks.set(id, changed)
    } else {
      const { body } = await this.#expect({ method: "GET", path }, [200])
      const found = { description: body.description, status: body.status }
      if (!isDeepStrictEqual(found, known)) this.#differs(path, found, known)
    }
  }

  async #recipient() {
    const address = `person${this.#draw(10)}@example.org`
    const path = `${this.#own}/allowed-recipients`
    if (this.#draw(2) === 0) {
      await this.#expect({ method: "POST", path, body: { address } }, [200, 201])
      this.#allowed.add(address)
    } else {
      const there = this.#allowed.has(address)
      await this.#expect({ method: "DELETE", path: `${path}/${address}` }, [there ? 204 : 404], [404])
      this.#allowed.delete(address)
    }
  }

  async step() {
    const kind = this.#draw(10)
    this.operations++
    await (kind < 5 ? this.#secret() : kind < 8 ? this.#hook() : this.#recipient())
  }

  async #list(path: string, member: string): Promise<ReadonlyArray<any>> {
    const found: Array<any> = []
    let cursor = ""
    do {
      const separator = path.includes("?") ? "&" : "?"
      const { body } = await this.#expect({ method: "GET", path: `${path}${separator}limit=100${cursor}` }, [200])
      found.push(...body[member])
      cursor = body.next_cursor === null ? "" : `&cursor=${encodeURIComponent(body.next_cursor)}`
    } while (cursor !== "")
    return found
  }

  /** Compares all resources of this caller with the model. */
  async compare() {
    const secrets = await this.#list("/api/vault/secrets", "secrets")
    const names = secrets.map(({ name }) => name as string).filter((name) => name.startsWith(`model.${this.#name}.`))
    const wanted = [...this.#secrets.keys()].toSorted()
    if (!isDeepStrictEqual(names.toSorted(), wanted)) this.#differs("the list of secrets", names, wanted)
    for (const [name, value] of this.#secrets) {
      const { body } = await this.#expect({ method: "GET", path: `/api/vault/secrets/${name}/value` }, [200])
      if (body.value !== value) this.#differs(name, body.value, value)
    }
    const hooks = await this.#list(`${this.#own}/webhooks`, "webhooks")
    const found = Object.fromEntries(hooks.map(({ id, description, status }) => [id, { description, status }]))
    const model = Object.fromEntries(this.#hooks)
    if (hooks.length !== this.#hooks.size || !isDeepStrictEqual(found, model))
      this.#differs("the Webhooks", found, model)
    const allowed = await this.#list(`${this.#own}/allowed-recipients`, "allowed_recipients")
    // The account's own address is always allowed.
    const addresses = allowed
      .map(({ address }) => address as string)
      .filter((address) => /^person\d@/.test(address))
      .toSorted()
    const known = [...this.#allowed].toSorted()
    if (!isDeepStrictEqual(addresses, known)) this.#differs("the allowed recipients", addresses, known)
  }
}
