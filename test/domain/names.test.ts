/** The names of this deployment, and the names of hosts, sites and DIDs that requests contain. */
import * as Addresses from "@svc/domain/Addresses"
import { documentUrl, handleOf } from "@svc/domain/proof/DidWeb"
import { isOurs } from "@svc/domain/proof/IdentityToken"
import { SitesPatch } from "@svc/domain/proof/SignIn"
import { originOf, parseNetwork } from "@svc/domain/tunnel/Tunnel"
import { Schema } from "effect"
import { describe, expect, it } from "vitest"

const book = {
  environment: "production",
  baseUrl: "https://id.example.org",
  profileBase: "https://people.example.org:8443/of/",
  mailDomain: "mail.example.org",
  tunnelDomain: "tunnel.example.net",
  tunnelScheme: "https",
  tunnelPort: undefined,
} as Addresses.AddressBook
const local = {
  ...book,
  profileBase: "http://localhost:3000",
  tunnelScheme: "http",
  tunnelPort: 3001,
} as Addresses.AddressBook

describe("The addresses of an Identity", () => {
  it("are formed from its Handle", () => {
    expect(Addresses.email(book, "ada")).toBe("ada@mail.example.org")
    expect(Addresses.tunnelUrl(book, "ada")).toBe("https://ada.tunnel.example.net")
    expect(Addresses.tunnelUrl(local, "ada")).toBe("http://ada.tunnel.example.net:3001")
    expect(Addresses.cardUrl(local, "ada")).toBe("http://localhost:3000/@ada/agent-card.json")
    expect(Addresses.did(book, "ada")).toBe("did:web:people.example.org%3A8443:of:%40ada")
    expect(Addresses.did(local, "ada")).toBe("did:web:localhost%3A3000:%40ada")
    expect(Addresses.tunnelDid(book, "ada")).toBe("did:web:ada.tunnel.example.net")
    expect(Addresses.tunnelDid(local, "ada")).toBe("did:web:ada.tunnel.example.net%3A3001")
  })

  it("include two DIDs that lead back to the Handle; other DIDs do not", () => {
    for (const own of [book, local])
      for (const text of [Addresses.did(own, "ada-1"), Addresses.tunnelDid(own, "ada-1")])
        expect(handleOf(own, text)).toBe("ada-1")
    for (const text of [
      "did:web:people.example.org:of:%40ada",
      "did:web:other.example:%40ada",
      "did:web:ada.other.example",
      "did:web:tunnel.example.net",
      "did:key:ada.tunnel.example.net",
      "ada",
    ])
      expect([text, handleOf(book, text)]).toEqual([text, undefined])
  })
})

it("A DID has at most 512 characters", () => {
  const of = (length: number) => documentUrl(book, `did:web:a.example:${"x".repeat(length - 18)}`)
  expect([of(512), of(513)]).toEqual([expect.stringMatching(/^https:\/\/a\.example\/x+\/did\.json$/), undefined])
})

it.each([
  ["https://id.example.org/token", true],
  ["id.example.org", true],
  ["ID.example.org.", true],
  ["https://people.example.org.:8443", true],
  ["people.example.org:8443", true],
  ["people.example.org", false],
  ["id.example.org.evil.example", false],
  ["https://evil.example/id.example.org", false],
  ["urn:example", false],
  ["", false],
])("The audience %s names this service: %s", (audience, ours) => expect(isOurs(book, audience)).toBe(ours))

describe("A site", () => {
  it.each([
    ["app.example", true],
    ["app.example:8443", true],
    ["com.example.app:", true],
    ["App.example", false],
    ["app.example:443", false],
    ["https://app.example", false],
    ["app.example/x", false],
    ["app.example?x", false],
    ["app.example#x", false],
    ["user@app.example", false],
    ["https:", false],
    ["http:", false],
    ["", false],
  ])("%s is accepted: %s", (site, may) => expect(Schema.is(SitesPatch)([site])).toBe(may))

  it("is one of at most 50 in a list", () => {
    const many = (count: number) => Array.from({ length: count }, (_, n) => `a${n}.example`)
    expect([many(0), many(50), many(51), "any", "all"].map((list) => Schema.is(SitesPatch)(list))).toEqual([
      true,
      true,
      false,
      true,
      false,
    ])
  })
})

it.each([
  ["https://agent.example", "https://agent.example"],
  ["http://Agent.example:8080/", "http://agent.example:8080"],
  ["https://agent.example/x", undefined],
  ["https://agent.example/?x", undefined],
  ["https://user@agent.example", undefined],
  ["ftp://agent.example", undefined],
  ["agent.example", undefined],
])("The origin in %s is %s", (text, origin) => expect(originOf(text)).toBe(origin))

it.each([
  ["192.0.2.0/24", { address: "192.0.2.0", bits: 24, family: "ipv4" }],
  ["192.0.2.7", { address: "192.0.2.7", bits: 32, family: "ipv4" }],
  ["2001:DB8::/32", { address: "2001:db8::", bits: 32, family: "ipv6" }],
  ["2001:db8::1", { address: "2001:db8::1", bits: 128, family: "ipv6" }],
  ["10.1", undefined],
  ["10.1/8", undefined],
  ["192.0.2.0/33", undefined],
  ["agent.example", undefined],
])("The network %s is read as %j", (text, network) => expect(parseNetwork(text)).toEqual(network))
