/**
 * The HTML of a message in a frame that runs no script and loads no remote content until the reader asks for it. The server
 * sets its policy (`packages/api/src/console/MailBody.ts`).
 */
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

export const HtmlFrame = ({ handle, id, offer, images, onImages }: HtmlFrameProps) => {
  const at = `/console/mail/${encodeURIComponent(handle)}/${id}/body`
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
        sandbox="allow-popups allow-popups-to-escape-sandbox"
        referrerpolicy="no-referrer"
        src={images ? `${at}?images=1` : at}
      />
    </>
  )
}
