/** External programs that some tests use, with their Debian packages. Tests are skipped if their program is missing. */
import { spawnSync } from "node:child_process"
import { existsSync } from "node:fs"

interface Program {
  /** Debian packages that contain it. */
  readonly packages: string
  readonly isInstalled: () => boolean
}

const found = (packages: string, program: string = packages): Program => ({
  packages,
  isInstalled: () =>
    program.startsWith("/") ? existsSync(program) : spawnSync("which", [program], { stdio: "ignore" }).status === 0,
})
const succeeds = (packages: string, program: string, ...words: ReadonlyArray<string>): Program => ({
  packages,
  isInstalled: () => spawnSync(program, words, { stdio: "ignore" }).status === 0,
})
/** Succeeds if Python finds the modules. Importing them would take a third of a second of processor time. */
const modules = (packages: string, ...names: ReadonlyArray<string>): Program =>
  succeeds(
    packages,
    "/usr/bin/python3",
    "-c",
    `import sys; from importlib.util import find_spec
assert sys.version_info >= (3, 10) and all(find_spec(name) for name in sys.argv[1:])`,
    ...names,
  )
/** Marks a program that only root can run with its own configuration. */
const asRoot = (program: Program): Program => ({
  ...program,
  isInstalled: () => process.getuid?.() === 0 && program.isInstalled(),
})

const browsers = [
  process.env["CHROMIUM"],
  // The headless shell needs half of the CPU time.
  "/usr/bin/chromium-headless-shell",
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
]
/** The path of Chromium, if it is installed. */
export const browser = browsers.find((path): path is string => path !== undefined && existsSync(path))

export const programs = {
  aerc: found("aerc"),
  chromium: { packages: "chromium-headless-shell", isInstalled: () => browser !== undefined },
  curl: found("curl"),
  dkimpy: modules("python3-dkim python3-nacl", "dkim", "nacl"),
  exim: asRoot(found("exim4-daemon-light", "/usr/sbin/exim4")),
  jq: found("jq"),
  ldns: found("ldnsutils", "ldns-signzone"),
  mbsync: found("isync", "mbsync"),
  msmtp: found("msmtp"),
  mypy: modules("mypy", "mypy"),
  neomutt: found("neomutt"),
  offlineimap: found("offlineimap3", "offlineimap"),
  openssl: found("openssl"),
  opensmtpd: asRoot({
    packages: "opensmtpd",
    isInstalled: () => existsSync("/usr/sbin/smtpd") && !existsSync("/var/run/smtpd.sock"),
  }),
  pyjwt: modules("python3-jwt python3-cryptography", "jwt", "cryptography"),
  pgbouncer: found("pgbouncer", "/usr/sbin/pgbouncer"),
  postfix: asRoot(found("postfix", "/usr/sbin/postfix")),
  // The version of Debian 12, which is too old for the service.
  postgres15: found("postgresql-15", "/usr/lib/postgresql/15/bin/initdb"),
  promtool: found("prometheus", "promtool"),
  python: modules("python3", "email.policy", "smtplib"),
  pythonBuild: modules("python3-build python3-hatchling", "build", "hatchling"),
  pythonHttpx: modules("python3-httpx", "anyio", "httpx"),
  snac: found("snac"),
  // It may be installed without the Perl module for TLS.
  swaks: {
    packages: "swaks libnet-ssleay-perl",
    isInstalled: () => {
      const { stdout, status } = spawnSync("swaks", ["--support"], { encoding: "utf8" })
      return status === 0 && !stdout.includes("TLS not available")
    },
  },
  tmux: found("tmux"),
  unbound: found("unbound", "/usr/sbin/unbound"),
  wrk: found("wrk"),
} satisfies Record<string, Program>

export type ProgramName = keyof typeof programs

const known = new Map<ProgramName, boolean>()

/** Returns whether all of these programs are installed. */
export const has = (...names: ReadonlyArray<ProgramName>): boolean =>
  names.every((name) => {
    const answer = known.get(name) ?? programs[name].isInstalled()
    known.set(name, answer)
    return answer
  })
