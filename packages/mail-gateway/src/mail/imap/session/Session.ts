/**
 * An IMAP session (RFC 9051) without sockets or database: it consumes and produces bytes. Operations on the connection
 * itself (TLS, compression, close) are returned as a {@link Turn}. Commands run one after another.
 */
import { type Unavailable } from "@svc/domain/problems/Problem"
import { Effect, type Redacted, Scope, Semaphore } from "effect"
import type { Action, Command } from "../protocol/Command.ts"
import { type Frame, Framing } from "../protocol/Framing.ts"
import { parse } from "../protocol/Parser.ts"
import * as Authentication from "./Authentication.ts"
import * as Capabilities from "./Capabilities.ts"
import { bad, type Completion, Conversation, no, ok, writeCompletion } from "./Conversation.ts"
import * as Dispatch from "./Dispatch.ts"
import { type CutShort } from "./FetchCommand.ts"
import { sync, sendRemovals } from "./SelectedFolder.ts"
import * as Spool from "./Spool.ts"
import { type Refused, type Store } from "./Store.ts"
import * as IdleNotifier from "./IdleNotifier.ts"

/** The action of the connection after a chunk was processed. The rest of the chunk starts at `at`. */
type Turn =
  | { readonly _tag: "More" }
  | { readonly _tag: "StartTls" }
  | { readonly _tag: "Compress"; readonly at: number }
  | { readonly _tag: "Close" }

interface Settings {
  /** Maximum bytes of an appended message. */
  readonly messageBytes: number
  /** Temporary storage of large messages. */
  readonly spools: Spool.Spools
  /** Whether passwords are accepted without TLS. */
  readonly allowsPlain: boolean
  readonly send: (bytes: string | Uint8Array) => Effect.Effect<void>
  /** Runs background work that no command waits for. */
  readonly run: (effect: Effect.Effect<void>) => void
  /** Authenticates and returns the Mailbox, or why the login was denied. The store lasts as long as the session. */
  readonly login: (
    user: string | undefined,
    password: Redacted.Redacted<string>,
  ) => Effect.Effect<Store | Authentication.Denied, never, Scope.Scope>
}

/** Input limits before and after login. */
export const limits = {
  // Clients may send ID before login: 30 fields with names of 30 bytes and values of 1,024, each escaped or a literal
  // (RFC 2971 section 3.3).
  before: {
    commandBytes: 64 * 1024,
    literals: 60,
    literalBytes: 1_024,
    heldBytes: 1_024,
    passedBytes: 96 * 1024,
    passedLiteralBytes: 64 * 1024,
  },
  after: {
    commandBytes: 64 * 1024,
    literals: 200,
    literalBytes: 16 * 1024,
    heldBytes: 64 * 1024,
    passedBytes: 1024 * 1024,
    passedLiteralBytes: 256 * 1024 * 1024,
  },
  /** Consecutive invalid commands before the session ends. */
  mistakes: 20,
}

const isAppend = /^\S+ +append /i

export const make = Effect.fnUntraced(function* (settings: Settings, isSecure: boolean) {
  const aside = Spool.aside(settings.spools)
  const conversation = new Conversation(settings.send, settings.messageBytes, aside)
  const scope = yield* Effect.scope
  let isOver = false
  yield* Effect.addFinalizer(() =>
    Effect.suspend(() => {
      isOver = true
      return aside.clear
    }),
  )
  const turns = yield* Semaphore.make(1)
  const judged: Authentication.Login = (user, password) =>
    Effect.provideService(settings.login(user, password), Scope.Scope, scope)
  const state: Capabilities.State = {
    isSecure,
    isCompressed: false,
    isLoggedIn: false,
    allowsPlain: settings.allowsPlain,
    messageBytes: settings.messageBytes,
  }
  let mistakes = 0
  let authenticating: Authentication.Exchange | undefined
  let turn: Turn | undefined
  /** Synchronizes an idle client, and repeats that until it succeeds. */
  let tell = () => {}

  const framing = new Framing(() =>
    conversation.store === undefined
      ? { ...limits.before, literalBytes: () => limits.before.literalBytes }
      : {
          ...limits.after,
          literalBytes: (start) =>
            isAppend.test(start)
              ? Math.min(settings.messageBytes, Math.max(limits.after.heldBytes, settings.spools.room()))
              : limits.after.literalBytes,
        },
  )

  const complete = (tag: string, completion: Completion): Effect.Effect<void> => {
    conversation.write(writeCompletion(tag, completion))
    return conversation.flush
  }

  /** Reports a failure briefly to the client and logs defects. */
  const settled = (
    work: Effect.Effect<Completion, Refused | Unavailable | CutShort>,
  ): Effect.Effect<Completion | undefined> =>
    work.pipe(
      Effect.catchTags({
        ImapRefused: ({ code, message }) => Effect.succeed(no(message, code)),
        unavailable: () => Effect.succeed(no("The service did not answer in time.", "UNAVAILABLE")),
        ImapCutShort: () => Effect.as(close, undefined),
      }),
      Effect.catchDefect((defect) =>
        Effect.as(Effect.logError("An IMAP command ended in a defect", defect), no("Internal error.", "SERVERBUG")),
      ),
    )

  const close = Effect.sync(() => {
    turn = { _tag: "Close" }
  })

  const sayBye = (text: string) => {
    conversation.write(`* BYE ${text}\r\n`)
    return conversation.flush
  }
  const bye = (text: string) => Effect.andThen(sayBye(text), close)

  const mistake = Effect.fnUntraced(function* (tag: string, text: string) {
    mistakes++
    yield* complete(tag, bad(text))
    if (mistakes >= (conversation.store === undefined ? 4 : limits.mistakes)) yield* bye("Too many mistakes.")
  })

  const loggedIn = Effect.fnUntraced(function* (tag: string, outcome: Store | Authentication.Denied) {
    if ("denied" in outcome) {
      yield* complete(tag, no(outcome.text, outcome.denied))
      if (outcome.ends) yield* bye("Too many failed logins.")
      return
    }
    conversation.store = outcome
    state.isLoggedIn = true
    yield* Scope.provide(watch(outcome), scope)
    yield* complete(tag, ok("Logged in.", Capabilities.code(state)))
  })

  /** Synchronizes an idle client immediately; for other clients it only records that something changed. */
  const watch = (store: Store) => {
    const look = turns.withPermits(1)(
      Effect.suspend(() => {
        conversation.dirty = true
        return conversation.idling === undefined || isOver
          ? Effect.succeed(true)
          : Effect.andThen(
              settled(Effect.as(sync(conversation, store, true), ok(""))),
              Effect.suspend(() => Effect.as(conversation.flush, !conversation.dirty)),
            )
      }),
    )
    tell = IdleNotifier.make(settings.run, look)
    return store.watch(() => {
      if (conversation.idling === undefined) conversation.dirty = true
      else tell()
    })
  }

  const doAction = Effect.fnUntraced(function* (tag: string, action: Action) {
    switch (action.name) {
      case "CAPABILITY":
        conversation.write(`* CAPABILITY ${Capabilities.write(state)}\r\n`)
        return yield* complete(tag, ok("CAPABILITY completed."))
      case "LOGOUT":
        conversation.write("* BYE Logging out\r\n")
        yield* complete(tag, ok("LOGOUT completed."))
        return yield* close
      case "ID":
        conversation.write(`* ID ("name" "svc")\r\n`)
        return yield* complete(tag, ok("ID completed."))
      case "STARTTLS":
        if (state.isSecure) return yield* complete(tag, bad("TLS is active."))
        yield* complete(tag, ok("Begin TLS negotiation now."))
        turn = { _tag: "StartTls" }
        return
      case "COMPRESS":
        if (action.algorithm !== "DEFLATE") return yield* complete(tag, bad("Unknown compression algorithm."))
        if (state.isCompressed) return yield* complete(tag, no("Compression is active.", "COMPRESSIONACTIVE"))
        if (!state.isLoggedIn) return yield* complete(tag, bad("Log in first."))
        yield* complete(tag, ok("DEFLATE active."))
        state.isCompressed = true
        turn = { _tag: "Compress", at: 0 }
        return
      case "LOGIN":
      case "AUTHENTICATE": {
        if (state.isLoggedIn) return yield* complete(tag, bad("Already logged in."))
        if (!Capabilities.mayLogIn(state)) {
          return yield* complete(
            tag,
            no("Start TLS first: passwords are not accepted on an unencrypted connection.", "PRIVACYREQUIRED"),
          )
        }
        if (action.name === "LOGIN") {
          return yield* loggedIn(tag, yield* Authentication.login(judged, action))
        }
        return yield* exchange(tag, Authentication.begin(action))
      }
      case "IDLE":
        if (conversation.store === undefined) return yield* complete(tag, bad("Log in first."))
        conversation.write("+ idling\r\n")
        conversation.idling = tag
        framing.expectsLine = true
        yield* settled(Effect.as(sync(conversation, conversation.store, true), ok("")))
        if (conversation.dirty) tell()
        return yield* conversation.flush
      default: {
        const { store } = conversation
        if (store === undefined) {
          return yield* complete(tag, action.name === "NOOP" ? ok("NOOP completed.") : bad("Log in first."))
        }
        const completion = yield* settled(
          Effect.gen(function* () {
            const done = yield* Dispatch.run(conversation, store, tag, action)
            if (Dispatch.maySync(action)) {
              const removals = Dispatch.maySendRemovals(action)
              if (Dispatch.alwaysSyncs(action)) yield* sync(conversation, store, removals)
              // The command has succeeded, even if the changes of the folder cannot be read.
              else if (conversation.dirty) yield* Effect.ignore(sync(conversation, store, removals))
              else if (removals && conversation.selected !== undefined)
                sendRemovals(conversation, conversation.selected)
            }
            return done
          }),
        )
        if (completion !== undefined) yield* complete(tag, completion)
      }
    }
  })

  const exchange = Effect.fnUntraced(function* (tag: string, step: Authentication.Step) {
    if (step._tag === "Challenge") {
      authenticating = { ...step.exchange, tag }
      framing.expectsLine = true
      conversation.write(`+ ${step.text}\r\n`)
      return yield* conversation.flush
    }
    if (step._tag === "Refused") return yield* complete(tag, step.completion)
    yield* loggedIn(tag, yield* judged(step.user, step.password))
  })

  const continuation = Effect.fnUntraced(function* (text: string) {
    framing.expectsLine = false
    const { idling } = conversation
    if (idling !== undefined) {
      conversation.idling = undefined
      const isDone = text.trim().toUpperCase() === "DONE"
      return yield* complete(idling, isDone ? ok("IDLE completed.") : bad("Expected DONE."))
    }
    if (authenticating === undefined) return
    const { tag } = authenticating
    const step = Authentication.next(authenticating, text)
    authenticating = undefined
    yield* exchange(tag, step)
  })

  const dealWith = Effect.fnUntraced(function* (frame: Frame) {
    switch (frame._tag) {
      case "Portion":
        return yield* aside.take(frame.bytes, frame.of, frame.begins)
      case "Continue":
        conversation.write("+ go ahead\r\n")
        return yield* conversation.flush
      case "Line":
        return yield* continuation(frame.text)
      case "Refused": {
        const tag = /^[^\s()*+{"\\%]+(?= )/.exec(frame.start)?.[0] ?? "*"
        if (frame.reason === "literal" && isAppend.test(frame.start)) {
          return yield* complete(tag, no("The message is too large.", "TOOBIG"))
        }
        return yield* mistake(tag, frame.reason === "line" ? "The command is too long." : "The literal is too large.")
      }
      case "Endless":
        return yield* bye("The command does not end.")
      case "Command": {
        const command: Command = parse(frame.segments, conversation.utf8)
        if (command._tag === "Malformed") return yield* mistake(command.tag, `${command.message}.`)
        mistakes = 0
        yield* doAction(command.tag, command.action)
        if (command.action.name === "APPEND") yield* aside.clear
      }
    }
  })

  return {
    greet: Effect.suspend(() => {
      conversation.write(`* OK [${Capabilities.code(state)}] at your service\r\n`)
      return conversation.flush
    }),

    /** Processes a chunk of client input. */
    feed: (portion: Buffer): Effect.Effect<Turn> =>
      turns.withPermits(1)(
        Effect.gen(function* () {
          let at = 0
          while (at < portion.length) {
            const next = framing.next(portion, at)
            at = next.at
            if (next.frame === undefined) break
            yield* dealWith(next.frame)
            if (turn !== undefined) {
              const taken: Turn = turn
              turn = undefined
              return taken._tag === "Compress" ? { ...taken, at } : taken
            }
          }
          return { _tag: "More" } as const
        }),
      ),

    /** Marks the connection as encrypted; earlier capabilities are void (section 6.2.1). */
    secured: () => {
      state.isSecure = true
    },

    isLoggedIn: () => state.isLoggedIn,

    /** Sends a keepalive to an idle client. */
    stir: turns.withPermits(1)(
      Effect.suspend(() => {
        if (conversation.idling === undefined) return Effect.void
        conversation.write("* OK Still here\r\n")
        return conversation.flush
      }),
    ),

    /** Ends the session, whatever its state. */
    bye: sayBye,
  }
})

export type Session = Effect.Success<ReturnType<typeof make>>
