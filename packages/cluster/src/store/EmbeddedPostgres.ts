/**
 * An embedded PostgreSQL 18, shared by all processes on the machine with the same directory. The first process starts the
 * server, the end of the last one stops it (even after `kill -9`), and any process with a lease restarts it after a crash.
 * The binaries come from npm packages; nothing is downloaded at run time.
 */
import * as fs from "node:fs"
import * as path from "node:path"
import { DatabaseSync } from "node:sqlite"
import { Effect, Redacted, Schedule, Schema, type Scope } from "effect"
import * as Account from "./embedded/Account.ts"
import * as Binaries from "./embedded/Binaries.ts"
import * as Lease from "./embedded/Lease.ts"
import { endOrphans, type Running, running } from "./embedded/PidFile.ts"
import * as Server from "./embedded/Server.ts"
import { Timing } from "../Timing.ts"

/** PostgreSQL could not be started. `message` says why and what to do. */
class EmbeddedPostgresError extends Schema.TaggedError<EmbeddedPostgresError>()("EmbeddedPostgresError", {
  message: Schema.String,
}) {}

/** Connection parameters for `PgClient`. */
export interface Connection {
  readonly path?: string
  readonly host?: string
  readonly port?: number
  readonly username: string
  readonly password: Redacted.Redacted<string>
  readonly database: string
}

interface Embedded {
  readonly connection: Connection
  /** The actual data directory: in /var/lib if the server's account cannot access the requested one. */
  readonly home: string
}

const failure = (error: unknown) =>
  new EmbeddedPostgresError({ message: error instanceof Error ? error.message : String(error) })
const attempt = <A>(evaluate: () => A) => Effect.try({ try: evaluate, catch: failure })
const attemptPromise = <A>(evaluate: () => Promise<A>) => Effect.tryPromise({ try: evaluate, catch: failure })

/** A file system error alone does not tell an operator which setting to change. */
const unusable = (directory: string) => (error: unknown) =>
  error instanceof Error && "syscall" in error
    ? failure(
        `${directory} cannot hold the data (${error.message}). Set SVC_DATA_DIR to a folder that you can write to.`,
      )
    : failure(error)

/** Waits until the effect finds a value. */
const until = <A>(look: Effect.Effect<A | undefined, EmbeddedPostgresError>): Effect.Effect<A, EmbeddedPostgresError> =>
  Effect.flatMap(look, (found) =>
    found === undefined ? Effect.andThen(Effect.sleep(Timing.embeddedPoll), until(look)) : Effect.succeed(found),
  )

const lockFile = (file: string) =>
  Effect.try({
    try: () => {
      const database = new DatabaseSync(file)
      try {
        database.exec("PRAGMA busy_timeout = 0; BEGIN EXCLUSIVE")
        return database
      } catch (error) {
        database.close()
        throw error
      }
    },
    catch: (error) => (error instanceof Error ? error : new Error(String(error))),
  })

const isBusy = (error: Error) => /locked|busy/i.test(error.message)

/**
 * Holds the lock under which one process at a time starts the server, until the scope closes. It is SQLite's lock on a
 * file, which the kernel releases when its holder dies, so no lock is ever stale.
 */
const holdStartLock = (home: string): Effect.Effect<void, Error, Scope.Scope> =>
  Effect.acquireRelease(
    lockFile(path.join(home, "start.lock")).pipe(
      Effect.retry({ while: isBusy, schedule: Schedule.spaced("10 millis") }),
    ),
    (database) => Effect.sync(() => database.close()),
    { interruptible: true },
  ).pipe(Effect.asVoid)

/**
 * Returns the server, started if it does not run. Only one process at a time starts it. It first waits for a server that is
 * being stopped, ends processes that hold the shared memory of a killed server, and removes its lock files.
 */
const ensureRunning = Effect.fnUntraced(function* (installation: Server.Installation) {
  const { home } = installation
  yield* Effect.mapError(holdStartLock(home), failure)
  yield* attempt(() => Server.initialise(installation))
  yield* until(attempt(() => (Lease.isLeaving(home) ? undefined : true))).pipe(
    Effect.timeoutOption(Timing.embeddedLeaving),
  )
  return yield* started(installation).pipe(
    Effect.retry({ while: (error) => error === "again" }),
    Effect.timeoutOrElse({
      duration: Timing.embeddedStart,
      orElse: () => Effect.fail(failure(`PostgreSQL is not ready in time:\n${Server.lastLogLines(home)}`)),
    }),
  )
}, Effect.scoped)

/** Starts the server unless it runs, and returns it when it accepts connections. */
const started = Effect.fnUntraced(function* (
  installation: Server.Installation,
): Effect.fn.Return<Running, EmbeddedPostgresError | "again"> {
  const { home } = installation
  const isRunning = running(Server.dataOf(home)) !== undefined
  const launch = isRunning ? undefined : yield* attemptPromise(() => Server.start(installation))
  return yield* Effect.raceFirst(until(attemptPromise(() => Server.accepting(home))), diedEarly(home, launch))
})

/**
 * Fails when the server has ended: with "again" if another process was stopping it, or if files or shared memory of a killed
 * server prevented the start; otherwise with the reason from its log.
 */
const diedEarly = (
  home: string,
  launch: Server.Launch | undefined,
): Effect.Effect<never, EmbeddedPostgresError | "again"> =>
  Effect.sleep(Timing.embeddedDied).pipe(
    Effect.andThen(
      Effect.suspend((): Effect.Effect<void, EmbeddedPostgresError | "again"> => {
        if (running(Server.dataOf(home)) !== undefined) return Effect.void
        if (launch === undefined) return Effect.fail("again" as const)
        // A server that is slow to begin has not written its pid yet.
        if (!launch.hasExited()) return Effect.void
        if (!Server.metRemains(home, launch.log)) {
          return Effect.fail(failure(`PostgreSQL did not start:\n${Server.lastLogLines(home)}`))
        }
        endOrphans(Server.dataOf(home))
        return Effect.fail("again" as const)
      }),
    ),
    Effect.forever,
  )

/** Restarts the server when it crashes. */
const supervise = (installation: Server.Installation) =>
  Effect.suspend(() =>
    running(Server.dataOf(installation.home)) === undefined ? restart(installation) : Effect.void,
  ).pipe(Effect.repeat(Schedule.spaced(Timing.embeddedWatch)), Effect.forkScoped)

const restart = (installation: Server.Installation) =>
  Effect.logWarning("PostgreSQL is gone; starting it again").pipe(
    Effect.andThen(ensureRunning(installation)),
    Effect.catchTag("EmbeddedPostgresError", (error) =>
      Effect.logError("PostgreSQL could not be started again", error),
    ),
  )

/** Waits, in the last process, until the server has shut down. */
const release = (installation: Server.Installation, lease: Lease.Lease | undefined) =>
  Effect.gen(function* () {
    if (lease === undefined) return Server.stop(installation.native, installation.home)
    yield* Effect.promise(lease.release).pipe(Effect.timeoutOption(Timing.embeddedStop))
  })

const connectionOf = (server: Running, password: string): Connection => ({
  ...(Binaries.windows ? { host: "127.0.0.1", port: server.port } : { path: server.socket }),
  username: Server.superuser,
  password: Redacted.make(password),
  database: "postgres",
})

/** Opens the server until the scope closes. The last process stops the server. */
export const open = Effect.fn("EmbeddedPostgres.open")(function* (options: {
  readonly directory: string
  readonly settings?: Readonly<Record<string, string>>
  /** Opens an existing database of another major version instead, with that version's binaries. */
  readonly former?: { readonly home: string; readonly native: string }
}): Effect.fn.Return<Embedded, EmbeddedPostgresError, Scope.Scope> {
  const directory = path.resolve(options.directory)
  const { former, settings = {} } = options
  const installation = yield* Effect.try({
    try: (): Server.Installation => {
      const account = Account.unprivileged(directory)
      const home = former?.home ?? Account.home(directory, account)
      if (former === undefined) Server.refuseOtherMajorVersion(home)
      Server.prepare(home, account)
      return { home, account, native: Binaries.provide(home, account, former?.native), settings }
    },
    catch: unusable(directory),
  })
  yield* Effect.acquireRelease(
    Binaries.windows ? Effect.succeed(undefined) : attemptPromise(() => Lease.take(installation.home)),
    (lease) => release(installation, lease),
  )
  const password = yield* Effect.scoped(
    Effect.andThen(
      Effect.mapError(holdStartLock(installation.home), failure),
      attempt(() => Server.password(installation.home, installation.account)),
    ),
  )
  const server = yield* ensureRunning(installation)
  yield* supervise(installation)
  return { connection: connectionOf(server, password), home: installation.home }
})

/** Returns the actual data directory that {@link open} uses. */
export const homeOf = (directory: string): string => {
  const resolved = path.resolve(directory)
  return Account.home(resolved, Account.unprivileged(resolved))
}

/** Returns whether a directory has a database that {@link open} would open. */
export const hasData = (directory: string): boolean => Server.hasData(homeOf(directory))

/** Returns the database of another major version in a directory, and whether a server runs on it. */
export const formerOf = (directory: string): (Server.OtherMajorVersion & { readonly runs: boolean }) | undefined => {
  const former = Server.findOtherMajorVersion(homeOf(directory))
  return former && { ...former, runs: running(Server.dataOf(former.home)) !== undefined }
}

/** Returns the binaries of another major version from an optional package, or undefined if it is not installed. */
export const binariesOf = (major: number): string | undefined => Binaries.ofMajor(major)

/** Returns the name of such a package, and the package that it is an npm alias of. */
export const packageOf = (major: number): string => Binaries.packageOfMajor(major)

/** Returns the free bytes in the file system of a directory. */
export const freeBytes = (directory: string): Effect.Effect<number, EmbeddedPostgresError> =>
  Effect.map(
    attemptPromise(() => fs.promises.statfs(directory)),
    (stat) => stat.bavail * stat.bsize,
  )
