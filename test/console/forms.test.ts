/** What forms and commands of the console keep while requests are in flight, without a browser. */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { drawn, Entries, leaveAll, mounted, source } from "./Modules.ts"

const { Check, Select, TextArea, TextField } = await source("ui/Field.tsx")
const { useForm, wrongAt } = await source("ui/Form.tsx")
const { useChoice, useCommand } = await source("client/Commands.ts")
const { Refused, Unreachable } = await source("client/Client.ts")
const { storeUnsavedFor, unsavedWith } = await source("client/Unsaved.ts")
const { go } = await source("router/Router.ts")

const refusal = (status: number, errors: ReadonlyArray<object> = []) => new Refused({ status, detail: "no", errors })

beforeEach(() => {
  vi.stubGlobal("localStorage", new Entries())
  vi.stubGlobal("addEventListener", () => {})
  vi.stubGlobal("removeEventListener", () => {})
  storeUnsavedFor("ada")
})
afterEach(async () => {
  await leaveAll()
  storeUnsavedFor(undefined)
  vi.unstubAllGlobals()
})

describe("A form", () => {
  interface Values {
    readonly name: string
    readonly secret: string
    readonly isOn: boolean
  }
  const initial: Values = { name: "Ada", secret: "", isOn: false }
  const opened = async (values: Values | (() => Values) = initial) => {
    const requests: Array<PromiseWithResolvers<void> & { readonly key: string; readonly values: Values }> = []
    const use = (given: Values | (() => Values)): any =>
      useForm(
        given,
        (key: string, values: Values) => {
          const request = { ...Promise.withResolvers<void>(), key, values }
          requests.push(request)
          return request.promise
        },
        { name: "form", secrets: ["secret"] },
      )
    const form = await mounted(use, values)
    const enter = (name: keyof Values, value: unknown) => form.act(() => form.now.field(name).onValue(value))
    const submit = async () => {
      const done = Promise.withResolvers<boolean>()
      await form.act(() => void form.now.command.run().then(done.resolve))
      return { request: requests.at(-1)!, done: done.promise }
    }
    const stored = () => unsavedWith("form").map(([, value]: readonly [string, object]) => value)
    return { form, enter, submit, stored, requests, isChanged: () => form.now.command.form.isChanged() as boolean }
  }

  it("shows a change made elsewhere only while nothing is typed", async () => {
    const { form, enter, isChanged } = await opened()
    await form.draw({ ...initial, name: "Bob" })
    expect([form.now.values.name, isChanged()]).toEqual(["Bob", false])
    await enter("name", "Eve")
    await form.draw({ ...initial, name: "Cid" })
    expect([form.now.values.name, isChanged()]).toEqual(["Eve", true])
    // Discarding shows the newest values, not those from before the changes.
    await form.act(() => form.now.command.form.discard())
    expect([form.now.values.name, isChanged()]).toEqual(["Cid", false])
    await enter("name", "Dan")
    await form.draw({ ...initial, name: "Fay" })
    await enter("name", "Cid")
    expect([form.now.values.name, isChanged()]).toEqual(["Fay", false])
    await form.leave()
  })

  it("keeps what was entered while its request was in flight as a change", async () => {
    const { form, enter, submit, stored, isChanged } = await opened()
    await enter("name", "Bob")
    expect(stored()).toEqual([{ name: "Bob", isOn: false }])
    const { request, done } = await submit()
    expect([request.values.name, isChanged(), form.now.command.busy]).toEqual(["Bob", false, true])
    await enter("name", "Bobby")
    await form.draw({ ...initial, name: "Bob" })
    expect(form.now.values.name).toBe("Bobby")
    await form.act(() => request.resolve())
    expect([await done, form.now.values.name, isChanged()]).toEqual([true, "Bobby", true])
    expect(stored()).toEqual([{ name: "Bobby", isOn: false }])
    const second = await submit()
    expect([second.request.values.name, second.request.key === request.key]).toEqual(["Bobby", false])
    await form.act(() => second.request.resolve())
    expect([isChanged(), stored(), form.now.command.busy]).toEqual([false, [], false])
    await form.leave()
  })

  it("is not asked about after it was saved, also if it was emptied by that", async () => {
    const { form, enter, submit, isChanged, stored } = await opened()
    await enter("name", "Bob")
    const { request } = await submit()
    await form.act(() => form.now.set({ name: "" }))
    await form.act(() => request.resolve())
    expect([form.now.values.name, isChanged(), stored()]).toEqual(["", false, []])
    await form.leave()
  })

  it("keeps its input and its stored input if the request fails", async () => {
    const { form, enter, submit, stored, isChanged } = await opened()
    await enter("name", "Bob")
    await enter("secret", "sesame")
    await form.act(() => form.now.check("isOn").onValue(true))
    const { request, done } = await submit()
    await form.act(() => request.reject(refusal(422, [{ path: "/name", message: "taken" }])))
    expect([await done, isChanged()]).toEqual([false, true])
    expect([form.now.field("name").wrong, form.now.wrong("/secret")]).toEqual(["taken", undefined])
    expect(form.now.values).toEqual({ name: "Bob", secret: "sesame", isOn: true })
    expect(stored()).toEqual([{ name: "Bob", isOn: true }])
    await form.leave()
    const again = await opened()
    expect([again.form.now.values, again.form.now.command.form.isRestored]).toEqual([
      { name: "Bob", secret: "", isOn: true },
      true,
    ])
    await again.form.act(() => again.form.now.command.form.discard())
    expect([again.form.now.values, again.stored(), again.form.now.command.form.isRestored]).toEqual([
      initial,
      [],
      false,
    ])
    await again.form.leave()
  })

  it("restores only members of the type that it expects, and nothing whose request is in flight", async () => {
    const { form, enter, submit } = await opened()
    await enter("name", "Bob")
    const { request } = await submit()
    await form.leave()
    const meanwhile = await opened()
    expect(meanwhile.form.now.values.name).toBe("Ada")
    await meanwhile.form.leave()
    request.resolve()
    localStorage.setItem(
      "svc-unsaved:ada:form",
      JSON.stringify({ at: Date.now(), editor: "x", value: { name: ["Bob"], isOn: true, other: 1 } }),
    )
    const again = await opened()
    expect(again.form.now.values).toEqual({ ...initial, isOn: true })
    await again.form.leave()
  })

  it("names the member of an error by its pointer and those below it", () => {
    const failure = refusal(422, [{ path: "/to/0", message: "bad" }])
    expect([wrongAt(failure, "/to"), wrongAt(failure, "/to/0"), wrongAt(failure, "/t")]).toEqual([
      "bad",
      "bad",
      undefined,
    ])
    expect([wrongAt(undefined, "/to"), wrongAt(new Unreachable("gone"), "/to")]).toEqual([undefined, undefined])
  })

  it("asks before it is left only with changes, and not after it was left", async () => {
    const asked = vi.fn(() => false)
    vi.stubGlobal("confirm", asked)
    vi.stubGlobal("history", { pushState: () => {}, state: null })
    vi.stubGlobal("location", { pathname: "/console/", search: "" })
    const leave = () => {
      const before = asked.mock.calls.length
      try {
        go("/keys")
      } catch {
        // The rest of navigation needs a browser.
      }
      return asked.mock.calls.length - before
    }
    const { form, enter } = await opened()
    expect(leave()).toBe(0)
    await enter("name", "Bob")
    expect(leave()).toBe(1)
    await form.leave()
    expect(leave()).toBe(0)
  })
})

describe("A command", () => {
  const command = async () => {
    const runs: Array<PromiseWithResolvers<void> & { readonly key: string }> = []
    const use = (): any =>
      useCommand((key: string) => {
        const run = { ...Promise.withResolvers<void>(), key }
        runs.push(run)
        return run.promise
      })
    const hook = await mounted(use, {})
    const start = () => hook.act(() => void hook.now.run())
    const end = (failure?: unknown) =>
      hook.act(() => (failure === undefined ? runs.at(-1)!.resolve() : runs.at(-1)!.reject(failure)))
    return { hook, runs, start, end }
  }

  it("runs once at a time", async () => {
    const { hook, runs, start, end } = await command()
    await start()
    expect(await hook.now.run()).toBe(false)
    expect([runs.length, hook.now.busy]).toEqual([1, true])
    await end()
    expect(hook.now.busy).toBe(false)
    await start()
    expect(runs.length).toBe(2)
    await end()
  })

  it("keeps its idempotency key until its outcome is known", async () => {
    const { runs, start, end } = await command()
    for (const outcome of [new Unreachable("gone"), refusal(503), refusal(422), undefined, undefined]) {
      await start()
      await end(outcome)
    }
    const number = new Map<string, number>()
    const keys = runs.map(({ key }) => number.get(key) ?? number.set(key, number.size).size - 1)
    // A rejection or a success ends a key. After a lost connection or a failure of the service, the repeat has the same key.
    expect(keys).toEqual([0, 0, 0, 1, 2])
  })

  it("shows the failure of the last attempt until the next one", async () => {
    const { hook, start, end } = await command()
    await start()
    await end(refusal(409))
    expect(hook.now.failure.problem.status).toBe(409)
    await start()
    expect(hook.now.failure).toBeUndefined()
    await end("broken")
    expect(hook.now.failure).toEqual(new Error("broken"))
    await hook.act(() => hook.now.forget())
    expect(hook.now.failure).toBeUndefined()
  })
})

describe("A choice that is saved while it changes", () => {
  const choice = async () => {
    const saved: Array<PromiseWithResolvers<void> & { readonly value: string }> = []
    const use = (): any =>
      useChoice((value: string) => {
        const run = { ...Promise.withResolvers<void>(), value }
        saved.push(run)
        return run.promise
      })
    const hook = await mounted(use, {})
    return { hook, saved, choose: (value: string) => hook.act(() => void hook.now.run(value)) }
  }

  it("saves the last value, leaves out those between, and reports only its failure", async () => {
    const { hook, saved, choose } = await choice()
    for (const value of ["a", "b", "c"]) await choose(value)
    expect(saved.map(({ value }) => value)).toEqual(["a"])
    await hook.act(() => saved[0]!.reject(refusal(422)))
    expect([saved.map(({ value }) => value), hook.now.failure, hook.now.busy]).toEqual([["a", "c"], undefined, true])
    await hook.act(() => saved[1]!.reject(refusal(409)))
    expect([hook.now.failure.problem.status, hook.now.busy]).toEqual([409, false])
    await choose("d")
    await hook.act(() => saved[2]!.resolve())
    expect([saved.map(({ value }) => value), hook.now.failure]).toEqual([["a", "c", "d"], undefined])
  })
})

describe("A field", () => {
  it.each([
    ["input", TextField],
    ["textarea", TextArea],
    ["select", Select],
  ])("of kind %s is connected with its label, hint and error, and passes on what is entered", async (name, Field) => {
    const entered: Array<string> = []
    const onValue = (value: string) => entered.push(value)
    const given = { label: "Name", value: "Ada", onValue, children: [] }
    const { top, fire, draw, leave } = await drawn<object>(Field, {
      ...given,
      hint: "Short",
      wrong: "Too long",
      disabled: true,
    })
    const [control] = top.all(name)
    const { id, ...attributes } = control!.attributes
    const texts = attributes["aria-describedby"]!.split(" ").map((one) => top.all({ id: one })[0]?.textContent)
    expect(texts).toEqual(["Short", "Too long"])
    expect(attributes["aria-invalid"]).toBe("true")
    expect(top.all({ role: "alert" }).map(({ textContent }) => textContent)).toEqual(["Too long"])
    expect(top.all("label").map(({ attributes, textContent }) => [attributes["for"], textContent])).toEqual([
      [id, "Name"],
    ])
    expect((control as unknown as { disabled: unknown }).disabled ?? attributes["disabled"]).toBeTruthy()
    await fire(control, name === "select" ? "change" : "input", { currentTarget: { value: "Ada L." } })
    expect(entered).toEqual(["Ada L."])
    await draw({ ...given, optional: true })
    expect(control!.attributes).not.toHaveProperty("aria-describedby")
    expect(control!.attributes).not.toHaveProperty("aria-invalid")
    expect(top.all("label")[0]!.textContent).toBe("Name (optional)")
    await leave()
  })

  it("of kind checkbox passes on its next state", async () => {
    const entered: Array<boolean> = []
    const onValue = (value: boolean) => entered.push(value)
    const { top, fire, leave } = await drawn(Check, { checked: false, onValue, children: "On" })
    await fire(top.all("input")[0], "change", { currentTarget: { checked: true } })
    expect(entered).toEqual([true])
    await leave()
  })
})
