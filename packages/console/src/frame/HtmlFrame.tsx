/**
 * The HTML of a message in a frame that runs no script and loads no remote content until the reader asks for it. The server
 * sets its policy (`packages/api/src/console/MailBody.ts`). The frame is as high as its content: because nothing in it can
 * run, it has this origin, so that the console can measure it.
 */
import { useEffect, useRef } from "preact/hooks"
import { Button } from "../ui/Button.tsx"
import { say } from "./texts.ts"

interface HtmlFrameProps {
  readonly handle: string
  readonly id: string
  /** Whether the message refers to remote images. */
  readonly offer: boolean
  readonly images: boolean
  readonly onImages: () => void
}

/** Limits for content that grows with its frame; above them the frame scrolls. */
const heightAtMost = 20_000
const changesAtMost = 40
/** Room for a horizontal scroll bar. */
const barHeight = 16

/** Gives a loaded frame the height of its content, also when pictures load or the window changes. */
const fit = (frame: HTMLIFrameElement): (() => void) | undefined => {
  const page = frame.contentDocument?.documentElement
  const body = frame.contentDocument?.body
  if (page == null || body == null) return undefined
  let changes = 0
  const measure = () => {
    const { marginTop, marginBottom } = getComputedStyle(body)
    const bar = page.scrollWidth > page.clientWidth ? barHeight : 0
    const content = body.scrollHeight + Number.parseFloat(marginTop) + Number.parseFloat(marginBottom)
    const height = Math.min(heightAtMost, Math.ceil(content) + bar)
    if (Math.abs(height - frame.clientHeight) < 2 || changes >= changesAtMost) return
    changes++
    frame.style.height = `${height + 2}px`
  }
  const observer = new ResizeObserver(measure)
  observer.observe(body)
  measure()
  return () => observer.disconnect()
}

export const HtmlFrame = ({ handle, id, offer, images, onImages }: HtmlFrameProps) => {
  const at = `/console/mail/${encodeURIComponent(handle)}/${id}/body`
  const release = useRef<() => void>(undefined)
  useEffect(() => () => release.current?.(), [])
  return (
    <>
      {images || !offer ? null : (
        <div class="bar spread small muted">
          <span class="grow">{say("images_why")}</span>
          <Button small onClick={onImages}>
            {say("images")}
          </Button>
        </div>
      )}
      <iframe
        key={String(images)}
        class="message-frame"
        title={say("frame")}
        sandbox="allow-same-origin allow-popups allow-popups-to-escape-sandbox"
        referrerpolicy="no-referrer"
        src={images ? `${at}?images=1` : at}
        onLoad={({ currentTarget }) => {
          release.current?.()
          release.current = fit(currentTarget)
        }}
      />
    </>
  )
}
