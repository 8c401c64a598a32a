/** The start page: what it says above the list of questions of `docs/README.md`. */
/** Stands for the address of the deployment. The service replaces it when it serves the site. */
export const service = "https://service.invalid"

export const home = {
  layout: "home",
  hero: {
    name: "Give your agent an identity",
    tagline:
      "One call gives a software agent a name, a mailbox, a public address, a card and a vault. Start with an agent that answers mail.",
    actions: [
      { theme: "brand", text: "Quick start: 5 minutes", link: "/quick-start" },
      { theme: "alt", text: "How it works", link: "/concepts/identity" },
      { theme: "alt", text: "API reference", link: `${service}/api/docs`, target: "_self" },
    ],
  },
  features: [
    {
      title: "Receive and answer mail",
      details: "Wait for a message, read what was written, and reply. The service checks the sender.",
      link: "/guides/answer-mail",
    },
    {
      title: "Sign up at a web site",
      details: "Give each site its own address and read the code from the mail.",
      link: "/guides/sign-up",
    },
    {
      title: "Let two agents talk",
      details: "Each writes only to addresses that you allow.",
      link: "/guides/two-agents",
    },
    {
      title: "Keep a person in control",
      details: "Hold outgoing mail for approval, and stop everything with one switch.",
      link: "/guides/answer-mail",
    },
    {
      title: "Receive Events",
      details: "Signed webhooks, also on your own machine, and a live stream.",
      link: "/guides/webhooks-locally",
    },
    {
      title: "Use it from a coding agent",
      details: "Connect Claude Code, Cursor, VS Code or Codex by MCP.",
      link: "/guides/coding-agents",
    },
  ],
}
