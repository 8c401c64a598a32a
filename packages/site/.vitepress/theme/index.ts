/** The default theme in the colors of the console, with a remembered language of code and a link to the Markdown of a page. */
import { type Theme, useData, useRoute, withBase } from "vitepress"
import Default from "vitepress/theme-without-fonts"
import { defineComponent, h, nextTick, onMounted, watch } from "vue"
import identity from "../../../../docs/images/concepts/identity.svg?raw"
import "./style.css"

const storageKey = "docs-code"
/** Returns the labels of tabs that the reader chose, the latest last: groups may have different tabs. */
const stored = (): ReadonlyArray<string> => {
  try {
    return localStorage.getItem(storageKey)?.split("\n") ?? []
  } catch {
    return []
  }
}
const store = (label: string) => {
  try {
    const others = stored().filter((one) => one !== label)
    localStorage.setItem(storageKey, [...others.slice(-5), label].join("\n"))
  } catch {
    // The browser stores nothing for this page; the choice lasts until the page is left.
  }
}

const labelOf = (input: HTMLInputElement) => input.labels?.[0]?.textContent ?? ""

/** Selects the tab with this label in every code group that has one. */
const select = (label: string) => {
  for (const input of document.querySelectorAll<HTMLInputElement>(".vp-code-group input"))
    if (!input.checked && labelOf(input) === label) input.click()
}

/** Selects the reader's language in all groups. The tab that was clicked keeps its place on the screen. */
const follow = (event: MouseEvent) => {
  const input = event.target
  if (!event.isTrusted || !(input instanceof HTMLInputElement) || !input.matches(".vp-code-group input")) return
  const group = input.closest(".vp-code-group")!
  const before = group.getBoundingClientRect().top
  store(labelOf(input))
  select(labelOf(input))
  window.scrollBy({ top: group.getBoundingClientRect().top - before, behavior: "instant" })
}

const Markdown = defineComponent(() => {
  const { page } = useData()
  return () =>
    h("p", { class: "as-markdown" }, [
      h("a", { href: withBase(`/${page.value.filePath}`), target: "_self" }, "This page as Markdown"),
    ])
})

/** Gives elements of the default theme the roles that assistive technology needs. */
const repairRoles = () => {
  document.querySelector("#VPContent")?.toggleAttribute("role", false)
  document.querySelector("#VPContent.is-home")?.setAttribute("role", "main")
  // The heading of a section is the button; its arrow is a part of it.
  for (const arrow of document.querySelectorAll(".VPSidebarItem .item[role] > .caret")) {
    arrow.removeAttribute("role")
    arrow.removeAttribute("tabindex")
  }
}

const Drawing = () => h("div", { class: "hero-drawing", innerHTML: identity.replace(/<style>[\s\S]*<\/style>/, "") })

const Layout = defineComponent(() => {
  const route = useRoute()
  const restore = () => {
    repairRoles()
    for (const label of stored()) select(label)
  }
  onMounted(() => {
    restore()
    document.addEventListener("click", follow)
  })
  watch(
    () => route.path,
    () => void nextTick(restore),
  )
  return () => h(Default.Layout, null, { "doc-footer-before": () => h(Markdown), "home-hero-image": () => h(Drawing) })
})

export default { extends: Default, Layout } satisfies Theme
