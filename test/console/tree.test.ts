/**
 * The accessibility tree of every page, and announcements. Each page has one heading, landmarks, named controls and tables
 * with column headers.
 */
import { readFileSync } from "node:fs"
import * as path from "node:path"
import type { CDPSession } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { navigate, openContext, settled, startConsole, type TestConsole } from "../harness/Console.ts"
import { send } from "../harness/Mail.ts"
import { eventually } from "../harness/Service.ts"
import { root } from "../house/Imports.ts"
import { has } from "../harness/Programs.ts"

interface Node {
  readonly id: string
  readonly role: string
  readonly name: string
  readonly level: number | undefined
  readonly path: ReadonlyArray<string>
}

interface Raw {
  readonly nodeId: string
  readonly parentId?: string
  readonly ignored: boolean
  readonly role?: { readonly value?: string }
  readonly name?: { readonly value?: string }
  readonly properties?: ReadonlyArray<{ readonly name: string; readonly value: { readonly value?: unknown } }>
  readonly childIds?: ReadonlyArray<string>
}

/** Returns the nodes in reading order; `path` names the roles of their ancestors. */
const treeOf = async (cdp: CDPSession): Promise<ReadonlyArray<Node>> => {
  const { nodes } = (await cdp.send("Accessibility.getFullAXTree")) as unknown as { nodes: ReadonlyArray<Raw> }
  const byId = new Map(nodes.map((node) => [node.nodeId, node]))
  const found: Array<Node> = []
  const walk = (raw: Raw | undefined, around: ReadonlyArray<string>) => {
    if (raw === undefined) return
    const role = raw.role?.value ?? ""
    const level = raw.properties?.find(({ name }) => name === "level")?.value.value
    if (!raw.ignored)
      found.push({
        id: raw.nodeId,
        role,
        name: (raw.name?.value ?? "").trim(),
        level: typeof level === "number" ? level : undefined,
        path: around,
      })
    for (const child of raw.childIds ?? []) walk(byId.get(child), raw.ignored ? around : [...around, role])
  }
  walk(
    nodes.find(({ parentId }) => parentId === undefined),
    [],
  )
  return found
}

const controls = new Set(
  "button link textbox searchbox combobox checkbox radio switch slider spinbutton menuitem tab option".split(" "),
)

describe.skipIf(!has("chromium"))("A screen reader", { timeout: 600_000 }, () => {
  let site: TestConsole
  let session: string
  let handle: string
  let message: string
  beforeAll(async () => {
    site = await startConsole()
    session = (await signUp(site.service.base)).session
    handle = (await makeIdentity(site.service.base, session)).handle
    const put = (method: string, at: string, body: unknown) =>
      call(site.service.base, method, at, { token: session, body })
    for (const name of ["one", "two"]) {
      await put("PUT", `/api/vault/secrets/${name}`, { value: "s3cret" })
      await put("POST", "/api/keys", { name })
      await put("POST", `/api/identities/${handle}/allowed-recipients`, { address: `${name}@example.org` })
      await put("POST", `/api/identities/${handle}/drafts`, { to: [`${name}@example.org`], subject: name, text: name })
      await put("POST", `/api/identities/${handle}/webhooks`, {
        url: `https://${name}.example.com/`,
        event_types: ["email.sent"],
      })
    }
    await send(site.service.smtpPort, {
      from: "Grace <grace@example.org>",
      to: `${handle}@mail.localhost`,
      subject: "Hello",
      text: "Are you up?",
      attachments: [{ filename: "a.txt", content: "x" }],
    })
    const listed = await eventually(
      () => call(site.service.base, "GET", `/api/identities/${handle}/messages`, { token: session }),
      ({ body }) => body.messages.length === 1,
    )
    message = listed.body.messages[0].id
  })
  afterAll(() => site?.stop())

  const open = async () => {
    const opened = await openContext(site.browser, site.service.base, {}, session)
    const page = await opened.context.newPage()
    const cdp = await opened.context.newCDPSession(page)
    return { ...opened, page, cdp }
  }

  it("finds a heading, landmarks and named controls on every page", async () => {
    const { context, page, cdp } = await open()
    const paths = [
      ...readFileSync(path.join(root, "packages/console/src/Routes.ts"), "utf8").matchAll(/page\("([^"]+)"/g),
    ]
      .map(([, pattern]) =>
        pattern!
          .replace(/\/mail\/:id$/, `/mail/${message}`)
          .replace(":handle", handle)
          .replace(":platform", "bluesky"),
      )
      .filter((to) => !to.includes(":") && to !== "/connectors/callback")
    const wrong: Array<string> = []
    await page.goto(`${site.service.base}/console${paths.at(-1)}`)
    await settled(page)
    for (const to of paths) {
      await navigate(page, to)
      const tree = await treeOf(cdp)
      const of = (role: string) => tree.filter((node) => node.role === role)

      const expectNone = (what: string, found: ReadonlyArray<unknown>) => {
        if (found.length > 0) wrong.push(`${to}: ${what}: ${JSON.stringify(found)}`)
      }
      const twice = (names: ReadonlyArray<string>) => names.filter((name, index) => names.indexOf(name) !== index)

      const first = tree.filter(({ role, level }) => role === "heading" && level === 1)
      expect(
        first.map(({ path, name }) => path.includes("main") && name !== ""),
        to,
      ).toEqual([true])
      // The heading is the first content.
      const content = tree.filter(({ path, role }) => path.includes("main") && !["none", "generic"].includes(role))
      expect(content[0]?.role, to).toBe("heading")

      expect([of("main").length, of("banner").length], to).toEqual([1, 1])
      const navigations = of("navigation").map(({ name }) => name)
      expect(navigations.length, to).toBeGreaterThan(0)
      expectNone("navigations of one name", twice(navigations))
      // The skip link is the first link.
      expect(tree.find(({ role }) => role === "link")?.name, to).toBe("Skip to content")

      const named = tree.filter(({ role }) => controls.has(role))
      expectNone(
        "without a name",
        named.filter(({ name }) => name === ""),
      )
      // Button names are unique, so that they make sense out of context.
      expectNone(
        "buttons of one name",
        twice(named.filter(({ role, path }) => role === "button" && path.includes("main")).map(({ name }) => name)),
      )
      expectNone(
        "tables without a name",
        of("table").filter(({ name }) => name === ""),
      )
      if (of("table").length > 0) expect(of("columnheader").length, to).toBeGreaterThan(0)
      expectNone(
        "columns without a name",
        of("columnheader").filter(({ name }) => name === ""),
      )
      expectNone(
        "items without a list",
        of("listitem").filter(({ path }) => !path.includes("list")),
      )
      expectNone("dialogs", of("dialog"))
    }
    expect(wrong).toEqual([])
    await context.close()
  })

  it("announces received messages and copied values", async () => {
    const { context, page, cdp } = await open()
    await page.goto(`${site.service.base}/console/identities/${handle}`)
    await settled(page)
    await page.getByText("Live", { exact: true }).waitFor()
    const said = () =>
      page.getByRole("status").evaluateAll((all: ReadonlyArray<any>) => all.map(({ textContent }) => textContent))
    // The live region exists before it has content, because only changes are announced.
    await eventually(said, (all) => all.length >= 2)
    expect((await said()).join("")).not.toContain("received an email")
    await send(site.service.smtpPort, {
      from: "grace@example.org",
      to: `${handle}@mail.localhost`,
      subject: "Again",
      text: "?",
    })
    await eventually(said, (all) => all.includes(`${handle} received an email`))
    await page.getByRole("button", { name: /^Copy/ }).first().click()
    await eventually(said, (all) => all.some((text) => text.includes("copied to clipboard")))
    expect((await treeOf(cdp)).some(({ role }) => role === "status")).toBe(true)
    await context.close()
  })

  it("reads a dialog's name, stays inside it, and returns to its button", async () => {
    const { context, page, cdp } = await open()
    await page.goto(`${site.service.base}/console/keys`)
    await settled(page)
    const focus = () =>
      page.evaluate<string>("document.activeElement.textContent + (document.activeElement.ariaLabel ?? '')")
    for (const [name, role] of [
      ["Create key", "button"],
      ["Search or jump to", "button"],
    ] as const) {
      const trigger = page.getByRole(role, { name: new RegExp(name, "i") }).first()
      await trigger.focus()
      const before = await focus()
      await page.keyboard.press("Enter")
      await page.getByRole("dialog").waitFor()
      const tree = await treeOf(cdp)
      const dialogs = tree.filter(({ role }) => role === "dialog")
      expect(dialogs.map(({ name }) => name !== "")).toEqual([true])
      // The page behind the dialog is inert.
      expect(tree.filter(({ role, path }) => controls.has(role) && !path.includes("dialog"))).toEqual([])
      await page.keyboard.press("Escape")
      await page.getByRole("dialog").waitFor({ state: "detached" })
      await eventually(focus, (now) => now === before)
    }
    await context.close()
  })

  it("continues at the heading of the new page after navigation", async () => {
    const { context, page } = await open()
    await page.goto(`${site.service.base}/console/`)
    await settled(page)
    await page.getByRole("navigation").getByRole("link", { name: "Vault" }).click()
    await page.getByRole("heading", { level: 1, name: "Vault" }).waitFor()
    await eventually(
      () => page.evaluate<string>("document.activeElement.tagName + ' ' + document.activeElement.textContent"),
      (at) => at === "H1 Vault",
    )
    await context.close()
  })

  it("can run the commands of two rows at the same time", async () => {
    const { context, page } = await open()
    await page.goto(`${site.service.base}/console/identities/${handle}/mail/settings`)
    await settled(page)
    // The first request is in flight while the second button is pressed.
    let release = () => {}
    const gate = new Promise<void>((resolve) => (release = resolve))
    await page.route("**/allowed-recipients/*", async (route) => {
      if (route.request().method() === "DELETE") await gate
      await route.continue()
    })
    for (const name of ["one", "two"])
      await page
        .getByRole("button", { name: new RegExp(`${name}@example\\.org`) })
        .first()
        .click()
    release()
    for (const name of ["one", "two"])
      await page.getByRole("cell", { name: `${name}@example.org`, exact: true }).waitFor({ state: "detached" })
    const { body } = await call(site.service.base, "GET", `/api/identities/${handle}/allowed-recipients`, {
      token: session,
    })
    expect(body.allowed_recipients.map(({ address }: { address: string }) => address)).not.toContain("two@example.org")
    await context.close()
  })
})
