import { expect, it } from "vitest"
import { environmentOf } from "./network/Installation.ts"

it("the nested npm installs the network from the registry of the outer npm", () => {
  const way = {
    PATH: "/usr/bin",
    npm_config_registry: "https://npm.example.org/",
    npm_config_cache: "/var/cache/npm",
    npm_config_cafile: "/etc/ssl/ours.pem",
    npm_config_strict_ssl: "true",
    npm_config_userconfig: "/home/ada/.npmrc",
    npm_config_https_proxy: "http://proxy.example.org:3128",
    npm_config_noproxy: "localhost",
    NPM_CONFIG_CAFILE: "/etc/ssl/ours.pem",
  }
  const meantForAnother = {
    npm_config_prefix: "/usr/local",
    npm_config_workspace: "test",
    npm_config_local_prefix: "/home/ada/checkout",
    npm_config_cache_max: "0",
    npm_lifecycle_event: "test",
  }
  expect(environmentOf({ ...way, ...meantForAnother })).toEqual(way)
})
