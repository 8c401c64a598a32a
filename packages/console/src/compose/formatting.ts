/**
 * The HTML of a message from its text in Markdown, beside which the text itself is sent. Quoted text may come from strangers:
 * HTML in it stays text, images become their descriptions, and links have one of three schemes.
 */
import { Marked } from "marked"

const escaped = (text: string) =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;")

const schemes = /^(?:https?:\/\/|mailto:)/i

const markdown = new Marked({
  gfm: true,
  // Lines end where the person ended them.
  breaks: true,
  renderer: {
    html: ({ text }) => escaped(text),
    image: ({ text }) => escaped(text),
    link({ href, tokens }) {
      const text = this.parser.parseInline(tokens)
      return schemes.test(href) ? `<a href="${escaped(href)}">${text}</a>` : text
    },
  },
})

export const htmlOf = (text: string): string => markdown.parse(text, { async: false })
