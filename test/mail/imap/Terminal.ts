/** Runs terminal programs in tmux: reads their screen and types. */
import { execFile } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { promisify } from "node:util"
import { eventually } from "../../harness/Service.ts"

const run = promisify(execFile)

/** Opens a terminal with a new home folder. */
export const make = async () => {
  const home = mkdtempSync(path.join(os.tmpdir(), "svc-terminal-"))
  const tmux = (...args: ReadonlyArray<string>) =>
    run("tmux", ["-S", path.join(home, "tmux"), "-f", "/dev/null", ...args])
  const screen = () =>
    tmux("capture-pane", "-p", "-t", "t").then(
      ({ stdout }) => stdout,
      () => "",
    )
  return {
    home,
    /** Runs a shell command after the previous one has ended. */
    again: (command: string) =>
      tmux(
        "new-session",
        "-d",
        "-s",
        "t",
        "-x",
        "120",
        "-y",
        "40",
        `env -u XDG_CONFIG_HOME -u XDG_CACHE_HOME HOME=${home} XDG_RUNTIME_DIR=${home} LANG=C.UTF-8 ${command}`,
      ),
    /** Waits for text on the screen. */
    shows: (pattern: RegExp) => eventually(screen, (text) => pattern.test(text)),
    type: (...keys: ReadonlyArray<string>) => tmux("send-keys", "-t", "t", ...keys),
    /** Waits until the command ends. */
    ended: async () => {
      let last = ""
      await eventually(
        async () => {
          const text = await screen()
          if (text !== "") last = text
          const isThere = await tmux("has-session", "-t", "t").then(
            () => true,
            () => false,
          )
          return isThere ? last : undefined
        },
        (shown) => shown === undefined,
        60,
      )
    },
    close: async () => {
      await tmux("kill-server").catch(() => {})
      rmSync(home, { recursive: true, force: true })
    },
  }
}

export type Terminal = Awaited<ReturnType<typeof make>>
