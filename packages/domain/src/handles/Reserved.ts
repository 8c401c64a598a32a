/**
 * Reserved Handles, which nobody can claim (interface.md "Handle rules", point 5). They are compared in canonical form.
 */
import reservedUsernames from "reserved-usernames" with { type: "json" }
import bigBlacklist from "the-big-username-blacklist"

/** Mailbox names of RFC 2142 for services, roles and functions, and other common addresses of organizations. */
const roles = `
  abuse noc security postmaster hostmaster usenet news webmaster www uucp ftp info marketing sales support
  admin administrator root sysadmin mailer-daemon mailerdaemon nobody noreply no-reply donotreply billing accounts
  accounting contact feedback help helpdesk jobs legal privacy press office hello-team team trust compliance dpo
  dmca copyright ceo cto staff moderator operator owner system daemon listserv majordomo
`
/**
 * Local parts to which certificate authorities send mail to validate control of a domain (CA/Browser Forum 3.2.2.4.4).
 */
const certificateRoles = `
  admin administrator webmaster hostmaster postmaster root ssladmin ssladministrator sslwebmaster sysadmin is it mis
`
const infrastructure = `
  api auth login logout signin signup register oauth oidc sso account accounts console dashboard mcp a2a agent agents
  agent-card identity identities handle handles webhook webhooks event events tunnel tunnels vault secret secrets key
  keys connector connectors card cards profile profiles message messages mailbox export exports session sessions device
  health healthz metrics status status-page problems docs openapi www www1 www2 web mail email smtp imap pop pop3 mx mx1
  mx2 ns ns1 ns2 dns ftp sftp ssh vpn proxy gateway relay edge cdn static assets img images media files cache db
  database postgres postgresql redis queue bounce bounces dkim dmarc spf mtasts mta-sts autoconfig autodiscover
  autodiscovery wpad isatap localhost localdomain local internal intranet test-server staging production prod dev
  development sandbox beta alpha demo-server example imprint impressum gdpr wellknown well-known favicon robots sitemap
  manifest service-worker hits contact connect
`
/** Hostnames below the tunnel domain that the product uses itself. */
export const productHostnames = ["connect", "www", "api", "edge", "console", "mcp", "status", "docs", "cdn", "relay"]
/** Names of fictitious agents in our own material. */
const marketing = `
  my-agent myagent your-agent youragent acme acme-agent example-agent demo-agent sample-agent test-agent support-agent
  sales-agent research-agent booking-agent
`
/** Brands of others that people would expect to stand behind an agent of that name. */
const brands = `
  openai chatgpt codex claude anthropic gemini google deepmind copilot microsoft github cursor mistral meta llama grok
  xai perplexity deepseek qwen alibaba huggingface langchain manus devin cognition siri apple alexa amazon aws nvidia
  cohere replit vercel cloudflare slack discord telegram whatsapp bluesky mastodon linkedin stripe paypal visa
  mastercard salesforce sap notion zapier n8n
`

const words = (text: string) => text.split(/\s+/).filter((word) => word !== "")
const canonicalised = (names: Iterable<string>) => Array.from(names, (name) => name.toLowerCase().replaceAll("-", ""))

/** The canonical form of every reserved name, except names that contain the vendor's brand. */
export const reserved: ReadonlySet<string> = new Set(
  canonicalised([
    ...reservedUsernames,
    ...bigBlacklist.list,
    ...words(roles),
    ...words(certificateRoles),
    ...words(infrastructure),
    ...productHostnames,
    ...words(marketing),
    ...words(brands),
  ]),
)
