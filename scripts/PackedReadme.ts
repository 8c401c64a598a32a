/**
 * Turns a document of the repository into the README of a package. Links point to files of the package, or to the
 * repository on the web; without one they become plain text.
 */
import { existsSync } from "node:fs"
import * as path from "node:path"

/** The `repository` of a package.json. */
export type Repository = string | { readonly url: string } | undefined

/** Returns the web address of the repository, or undefined. */
const web = (repository: Repository): string | undefined => {
  const url = typeof repository === "string" ? repository : repository?.url
  if (url === undefined) return undefined
  const [, owner] = /^(?:github:)?([\w.-]+\/[\w.-]+)$/.exec(url) ?? []
  const address = (owner === undefined ? url : `https://github.com/${owner}`)
    .replace(/^git\+/, "")
    .replace(/\.git$/, "")
  return address.startsWith("https://") ? address : undefined
}

interface Packed {
  /** The document's path in the repository. */
  readonly document: string
  /** The package's folder, in which it becomes README.md. */
  readonly folder: string
  readonly repository: Repository
}

export const packedReadme = (text: string, { document, folder, repository }: Packed): string => {
  const base = web(repository)
  const link = (whole: string, words: string, target: string): string => {
    if (/^([a-z]+:|#)/.test(target)) return whole
    const [file, anchor] = target.split("#") as [string, string?]
    const place = path.posix.join(path.posix.dirname(document), file)
    const rest = anchor === undefined ? "" : `#${anchor}`
    if (existsSync(path.join(folder, place))) return `[${words}](${place}${rest})`
    return base === undefined ? words : `[${words}](${base}/blob/HEAD/${place}${rest})`
  }
  // Code blocks stay unchanged.
  return text
    .split(/^(```[\s\S]*?^```$)/m)
    .map((part, at) => (at % 2 === 1 ? part : part.replaceAll(/\[([^\]]*)\]\(([^()\s]+)\)/g, link)))
    .join("")
}
