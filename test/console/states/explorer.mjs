// Runs in a page of the console: records its requests, describes what it shows, and operates its controls.
{
  /** The page has a fixed time, so that its texts do not depend on the duration of the test. */
  const now = Date.parse("2026-11-20T12:30:00.000Z")
  window.Date = class extends Date {
    constructor(...values) {
      if (values.length === 0) super(now)
      else super(...values)
    }
    static now() {
      return now
    }
  }

  // The page has no layout and is not painted, which would take half of the test's time. Therefore, no list is scrolled to
  // its end, where it would read its next page.
  const unseen = new CSSStyleSheet()
  unseen.replaceSync("html { display: none !important }")
  document.adoptedStyleSheets = [unseen]

  /** Everything that the page waits for: requests, frames, idle moments and short timers. Longer ones do not belong to a response. */
  const pending = new Set()
  const shortMillis = 400
  const realTimeout = window.setTimeout.bind(window)
  /** Timers after which the console forgets data that no page has shown for 15 minutes. */
  const forgetMillis = 15 * 60_000
  const forgetting = new Map()
  const follow = (name, stopName, isFollowed) => {
    const start = window[name].bind(window)
    const stop = window[stopName].bind(window)
    const own = new Map()
    window[name] = (run, ...values) => {
      const waiting = {}
      const id = start(
        (...given) => {
          try {
            run(...given)
          } finally {
            pending.delete(waiting)
            own.delete(id)
          }
        },
        ...values,
      )
      if (isFollowed(...values)) {
        pending.add(waiting)
        own.set(id, waiting)
      }
      if (values[0] === forgetMillis) forgetting.set(id, run)
      return id
    }
    window[stopName] = (id) => {
      pending.delete(own.get(id))
      own.delete(id)
      forgetting.delete(id)
      stop(id)
    }
  }
  follow("setTimeout", "clearTimeout", (millis = 0) => millis <= shortMillis)
  follow("requestAnimationFrame", "cancelAnimationFrame", () => true)
  follow("requestIdleCallback", "cancelIdleCallback", () => true)

  const requests = []
  let seen = []
  const note = (line) => seen.push(line)
  const told = { variant: sessionStorage.getItem("variant") ?? "0", fails: false }

  const realFetch = window.fetch.bind(window)
  /** Responses of reads, which are the same each time. */
  const answers = new Map()
  window.fetch = async (input, init = {}) => {
    const url = new URL(input, location.origin)
    const method = init.method ?? "GET"
    // The check whether the service can be reached.
    if (method === "HEAD") return new Response(null)
    const headers = new Headers(init.headers)
    const isChange = method !== "GET"
    if (isChange) {
      const conditions = ["if-match", "if-none-match"].flatMap((name) =>
        headers.has(name) ? [`${name}: ${headers.get(name)}`] : [],
      )
      note([`${method} ${url.pathname}${url.search}`, init.body, ...conditions].filter(Boolean).join(" "))
    } else requests.push(url.pathname + url.search)
    headers.set("x-variant", told.variant)
    if (told.fails) headers.set("x-fails", "1")
    // A message that was marked as read stays read; otherwise its page would mark it again without end.
    if (isChange && !told.fails) told.isRead = true
    if (told.isRead === true) headers.set("x-read", "1")
    const request = `${method} ${url.pathname}`
    const own = { request }
    pending.add(own)
    try {
      const key = [method, url, told.variant, told.isRead === true].join(" ")
      if (isChange || !answers.has(key)) {
        const response = await realFetch(input, { ...init, headers, keepalive: false })
        // The body is read before the page can become idle.
        answers.set(key, { response, body: await response.arrayBuffer() })
      }
      const { response, body } = answers.get(key)
      const { status } = response
      return new Response([101, 204, 205, 304].includes(status) ? null : body, { status, headers: response.headers })
    } finally {
      realTimeout(() => pending.delete(own))
    }
  }
  /** The live stream, which the test can let report a change of everything. */
  let stream
  window.EventSource = class extends EventTarget {
    static CLOSED = 2
    readyState = 1
    constructor() {
      super()
      stream = this
      realTimeout(() => this.onopen?.())
      this.beats = setInterval(() => this.dispatchEvent(new MessageEvent("beat", { data: "{}" })), 300)
    }
    close() {
      clearInterval(this.beats)
    }
  }
  window.confirm = (text) => {
    note(`asks ${text}`)
    return true
  }
  window.open = (...values) => void note(`opens ${values.join(" ")}`)
  Object.defineProperty(navigator, "clipboard", { value: { writeText: async (text) => note(`copies ${text}`) } })

  const waits = (millis) => new Promise((resolve) => realTimeout(resolve, millis))
  new MutationObserver((mutations) => {
    for (const one of mutations.flatMap(({ addedNodes }) => [...addedNodes]))
      if (one.nodeType === 1 && one.classList.contains("toast")) note(`says ${clean(one.textContent)}`)
  }).observe(document, { subtree: true, childList: true })
  /** Waits until the page waits for nothing. */
  const idle = async () => {
    const begun = performance.now()
    for (let calm = 0; calm < 3;) {
      if (performance.now() - begun > 60_000) {
        const reason =
          document.querySelector(".skeleton") === null
            ? `${[...pending].map(({ request = "a timer" }) => request).join(", ")} does not end`
            : "something is loading"
        throw new Error(`The page does not become idle: ${reason}, the last ones ${requests.slice(-3).join(", ")}`)
      }
      await waits(1)
      const isCalm =
        pending.size === 0 &&
        document.querySelector("h1, dialog") !== null &&
        document.querySelector(".skeleton") === null
      calm = isCalm ? calm + 1 : 0
    }
  }

  const isShown = new Set(
    `href role type name title alt placeholder maxlength required min max step autocomplete target rel download lang dir datetime
     tabindex open accept multiple pattern readonly src srcdoc sandbox data-tone data-kind data-verdict`.split(/\s+/),
  )
  const isNamed = new Set(["aria-describedby", "aria-labelledby", "aria-controls", "aria-activedescendant"])
  const clean = (text) =>
    text
      .replace(/\s+/g, " ")
      .replaceAll(location.origin, "https://console.example")
      .replaceAll(location.host, "console.example")
      .trim()
  const kept = (element) => {
    const tag = element.tagName.toLowerCase()
    const values = []
    for (const { name, value } of element.attributes) {
      if (isNamed.has(name)) {
        const text = value
          .split(" ")
          .map((id) => clean(document.getElementById(id)?.textContent ?? ""))
          .join(" ")
        values.push(`${name}=${JSON.stringify(text.slice(0, 60))}`)
      } else if (isShown.has(name) || name.startsWith("aria-"))
        values.push(value === "" ? name : `${name}=${JSON.stringify(clean(value))}`)
    }
    if (/^(input|select|textarea)$/.test(tag)) {
      if (element.type === "checkbox" || element.type === "radio")
        values.push(element.checked ? "checked" : "unchecked")
      else values.push(`value=${JSON.stringify(element.value)}`)
    }
    if (element.disabled === true) values.push("disabled")
    return values
  }
  const plain = new Set(["div", "span", "bdi", "p", "strong", "em", "small", "i", "b", "br", "header", "wbr"])
  /** Describes what an element contains, one line for each control, block or text. */
  const describe = (root) => {
    const lines = []
    let text = ""
    const flush = (depth) => {
      if (clean(text) !== "") lines.push(`${" ".repeat(depth)}${clean(text)}`)
      text = ""
    }
    const visit = (node, depth) => {
      if (node.nodeType === 3) return void (text += node.data)
      if (node.nodeType !== 1) return
      const tag = node.tagName.toLowerCase()
      if (tag === "style" || tag === "script") return
      const attributes = kept(node)
      if (tag === "svg" && node.getAttribute("role") !== "img") return
      if (plain.has(tag) && attributes.length === 0) {
        const isBlock = tag === "div" || tag === "p"
        if (isBlock) flush(depth)
        for (const child of node.childNodes) visit(child, depth)
        if (isBlock) flush(depth)
        else text += " "
        return
      }
      flush(depth)
      // A problem takes one line.
      if (node.getAttribute("role") === "alert") {
        lines.push(
          `${" ".repeat(depth)}<alert ${attributes.join(" ")}> ${clean(
            [...node.querySelectorAll("*")]
              .flatMap((one) => [...one.childNodes])
              .concat([...node.childNodes])
              .filter((one) => one.nodeType === 3)
              .map((one) => one.data)
              .join(" | "),
          )}`,
        )
        return
      }
      if (tag === "tr") {
        const cells = [...node.cells].map((cell) =>
          cell.querySelector("button, input, select, a") === null ? clean(cell.textContent) : "…",
        )
        lines.push(`${" ".repeat(depth)}<tr> ${cells.join(" | ")}`)
        for (const cell of node.cells)
          if (cell.querySelector("button, input, select, a") !== null)
            for (const child of cell.childNodes) visit(child, depth + 1)
        return flush(depth + 1)
      }
      const at = lines.length
      for (const child of node.childNodes) visit(child, depth + 1)
      flush(depth + 1)
      const line = `${" ".repeat(depth)}<${[tag, ...attributes].join(" ")}>`
      // An element with nothing but text takes one line.
      if (lines.length === at + 1 && !lines[at].trim().startsWith("<")) lines[at] = `${line} ${lines[at].trim()}`
      else lines.splice(at, 0, line)
    }
    visit(root, 0)
    return lines
  }
  const scope = () =>
    [...document.querySelectorAll("dialog[open]")].at(-1) ?? document.querySelector("main") ?? document.body
  const page = () => [
    ...describe(document.querySelector("main") ?? document.body),
    ...[...document.querySelectorAll("dialog[open], .shell-bar")]
      .filter((one) => one.closest("main") === null)
      .flatMap(describe),
  ]

  const setValue = (control, value) => {
    const prototype = { INPUT: HTMLInputElement, TEXTAREA: HTMLTextAreaElement, SELECT: HTMLSelectElement }[
      control.tagName
    ]
    Object.getOwnPropertyDescriptor(prototype.prototype, "value").set.call(control, value)
    control.dispatchEvent(new Event("input", { bubbles: true }))
    control.dispatchEvent(new Event("change", { bubbles: true }))
  }
  const typed = { email: "some.one@mail.example", url: "https://some.example/hook", date: "2026-12-24", time: "10:30" }
  /** Gives every control of the scope another value. */
  const fill = async () => {
    for (const round of [1, 2]) {
      const controls = [...scope().querySelectorAll("input, textarea, select")]
      for (const [at, control] of controls.entries()) {
        if (
          control.disabled ||
          control.readOnly ||
          control.dataset.filled ||
          control.type === "file" ||
          control.type === "search"
        )
          continue
        control.dataset.filled = "1"
        if (control.type === "checkbox") control.click()
        else if (control.type === "radio") {
          if (
            control.value !== undefined &&
            !control.checked &&
            controls.findLast((one) => one.name === control.name) === control
          )
            control.click()
        } else if (control.tagName === "SELECT")
          setValue(control, [...control.options].findLast((one) => !one.disabled)?.value ?? "")
        else if (control.type === "number") setValue(control, String(Number(control.value || control.min || 0) + 1))
        else if (control.type === "datetime-local") setValue(control, "2026-12-24T10:30")
        else {
          const label = clean(control.labels?.[0]?.textContent ?? control.getAttribute("aria-label") ?? "")
          const asked = /"([^"]+)"|type (\S+)/i.exec(label)
          setValue(control, typed[control.type] ?? asked?.[1] ?? asked?.[2] ?? `text${at}`)
        }
        await waits(0)
      }
      await idle()
      if (round === 1 && [...scope().querySelectorAll("input, textarea, select")].every((one) => one.dataset.filled))
        break
    }
  }

  const nameOf = (button) => clean(button.getAttribute("aria-label") ?? button.textContent) || button.title
  const operable = () =>
    [
      ...(document.querySelector("main") ?? document.body).querySelectorAll(
        "button, summary, select, input[type=radio], input[type=checkbox], input[type=search]",
      ),
    ].filter((one) => one.closest("dialog") === null)
  /** Names that differ by the item of their row count once. */
  const keyOf = (one) => {
    const name = nameOf(one).replace(/\d+/g, "#")
    return [
      one.tagName.toLowerCase(),
      one.tagName === "INPUT" ? one.type : "",
      name.length > 30 ? "row" : name,
      one.name ?? "",
    ]
      .filter(Boolean)
      .join(" ")
  }

  const go = async (to) => {
    history.pushState(null, "", to)
    dispatchEvent(new PopStateEvent("popstate"))
    await idle()
  }
  /** Lets the live stream report a change of everything, so that the page reads it again. */
  const readAgain = async () => {
    // The console follows the stream when it is idle.
    while (stream === undefined) await waits(5)
    stream.dispatchEvent(new MessageEvent("changed", { data: '{"changes":null}' }))
    await idle()
  }
  const leave = async () => {
    history.pushState(null, "", "/console/nowhere")
    dispatchEvent(new PopStateEvent("popstate"))
    for (
      const begun = performance.now();
      document.querySelector("h1")?.textContent !== "Page not found";
      await waits(2)
    )
      if (performance.now() - begun > 10_000)
        throw new Error(`The page cannot be left: ${document.body.textContent.slice(0, 200)}`)
  }
  /** Shows the page anew, without what was typed or opened. */
  const renew = async () => {
    told.fails = false
    told.isRead = false
    await leave()
    localStorage.clear()
    await go(sessionStorage.getItem("place"))
    seen = []
    return page()
  }
  const press = async (control) => {
    seen = []
    control.click()
    await idle()
    return seen
  }
  const isSent = (lines) => lines.some((line) => /^(?:POST|PUT|PATCH|DELETE) /.test(line))
  const moved = () => {
    const now = location.pathname + location.search
    return now === sessionStorage.getItem("place") ? [] : [`shows ${now}`]
  }
  /** The lines that only one of two descriptions has. */
  const difference = (before, after) => {
    const only = (these, those) => {
      const counts = new Map()
      for (const line of those) counts.set(line, (counts.get(line) ?? 0) + 1)
      return these.filter((line) => {
        const left = counts.get(line) ?? 0
        if (left > 0) counts.set(line, left - 1)
        return left === 0
      })
    }
    const gone = only(before, after)
    return [
      ...gone.slice(0, 1).map((line) => `- ${line.trim()}${gone.length > 1 ? ` and ${gone.length - 1} more` : ""}`),
      ...only(after, before).map((line) => `+ ${line}`),
    ]
  }

  /** Presses a button with every request refused, and then again with none refused. */
  const attempt = async (find) => {
    const lines = []
    let before = page()
    for (const fails of [true, false]) {
      const button = find()
      if (button === undefined || button.disabled) break
      told.fails = fails
      const name = nameOf(button)
      const from = requests.length
      const notes = await press(button)
      told.fails = false
      const after = page()
      if (fails && !isSent(notes)) return [`# ${name}`, ...notes, ...moved(), ...difference(before, after)]
      // The page reads again the data that a change concerns. The list of Identities is polled anyway while one of them is set up.
      // Signing out leaves the page while it reads again, so only requests of the session are certain.
      const isSignedOut = notes.some((line) => line.startsWith("DELETE /api/auth/session"))
      const again = new Set(
        requests
          .slice(from)
          // A further page of a list is read when the first one is rendered, which may be after this recording.
          .filter((one) => !one.includes("&cursor="))
          .filter((one) => (isSignedOut ? one.startsWith("/api/auth/") : !one.startsWith("/api/identities?"))),
      )
      const read = fails ? [] : [...again].sort().map((one) => `reads again ${one}`)
      lines.push(`# ${name}${fails ? ", refused" : ""}`, ...notes, ...read, ...moved(), ...difference(before, after))
      before = after
    }
    return lines
  }
  const submitOf = (dialog) => {
    const buttons = [...dialog.querySelectorAll("button")].filter((one) => !one.disabled)
    return (
      buttons.findLast((one) => one.type === "submit") ??
      buttons.findLast((one) => one.dataset.kind === "fatal" || one.dataset.kind === "primary") ??
      buttons.at(-1)
    )
  }

  const operate = async (key) => {
    await renew()
    const find = () => operable().find((one) => keyOf(one) === key)
    const control = find()
    if (control === undefined) return [`# ${key}`, "gone"]
    if (control.closest("form") !== null) await fill()
    if (control.tagName !== "BUTTON") {
      const before = page()
      seen = []
      const other =
        control.tagName === "SELECT"
          ? [...control.options].findLast((one) => one.value !== control.value && !one.disabled)
          : undefined
      if (control.tagName === "SELECT") setValue(control, other?.value ?? control.value)
      else if (control.type === "search") {
        setValue(control, "some words")
      } else control.click()
      await idle()
      return [`# ${key}`, ...seen, ...moved(), ...difference(before, page())]
    }
    const lines = await attempt(find)
    if (document.querySelector("dialog[open]") === null) return lines
    const shown = page()
    await fill()
    const filled = difference(shown, page()).filter((line) => line.startsWith("+"))
    return [
      ...lines,
      "# filled",
      ...filled,
      ...(await attempt(() => (document.querySelector("dialog[open]") === null ? undefined : submitOf(scope())))),
    ]
  }

  /** Leaves the page, removes its data from the cache, and shows this variant of the responses. */
  const show = async (variant) => {
    told.variant = variant
    await leave()
    await idle()
    for (const [id, forget] of forgetting) {
      clearTimeout(id)
      forget()
    }
    await readAgain()
  }

  window.explorer = {
    /** Describes the page if its resources are missing, then with the usual responses, then with each variant of them. */
    states: async (variants) => {
      await idle()
      sessionStorage.setItem("place", location.pathname + location.search)
      const missing = page()
      await show("0")
      const usual = await renew()
      const lines = [...new Set(requests)].sort().map((one) => `reads ${one}`)
      lines.push(...usual)
      for (const variant of variants) {
        told.variant = variant
        await readAgain()
        lines.push("", `# State ${variant}`, ...difference(usual, page()))
      }
      await show("0")
      return [...lines, "", "# missing", ...difference(usual, missing)]
    },
    controls: async () => {
      await idle()
      await renew()
      const keys = operable()
        .filter((one) => !one.disabled && one.getAttribute("aria-disabled") !== "true")
        .map(keyOf)
      // Two check boxes represent all of them: many only select rows.
      const boxes = new Set(keys.filter((key) => key.startsWith("input ")).slice(0, 2))
      return [...new Set(keys)].filter((key) => !key.startsWith("input ") || boxes.has(key)).slice(0, 14)
    },
    /** Operates a control. The page is lost if it cannot be shown anew: after sign-out, or in another language. */
    operate: async (key) => {
      const lines = await operate(key)
      return { lines, isLost: document.querySelector("#content") === null || document.documentElement.lang !== "en" }
    },
  }
}
