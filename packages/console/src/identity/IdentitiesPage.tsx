import { Sparkline } from "../charts/Sparkline.tsx"
import { useActivity } from "../charts/Usage.ts"
import { identityPath } from "../router/Paths.ts"
import { useIdentities } from "../shell/Identities.ts"
import { ButtonLink } from "../ui/Button.tsx"
import { Loaded } from "../ui/Loaded.tsx"
import { Empty, Page } from "../ui/Page.tsx"
import { Table } from "../ui/Table.tsx"
import { Time } from "../ui/Time.tsx"
import { IdentityStatus, TunnelStatus } from "../frame/IdentityStatus.tsx"
import { say } from "./texts.ts"

const Create = () => (
  <ButtonLink kind="primary" icon="plus" href="/console/identities/new">
    {say("create")}
  </ButtonLink>
)

const IdentitiesPage = () => {
  const identities = useIdentities()
  const activityOf = useActivity()
  return (
    <Page title={say("title")} lead={say("lead")} actions={<Create />}>
      <Loaded of={identities}>
        {({ identities }) =>
          identities.length === 0 ? (
            <div class="box">
              <Empty icon="agents" title={say("none")} action={<Create />}>
                {say("none_why")}
              </Empty>
            </div>
          ) : (
            <Table
              label={say("title")}
              heads={[say("name"), say("status"), say("address"), say("tunnel"), say("activity"), say("created")]}
              list
            >
              {identities.map(({ handle, status, email, tunnel, created_at }) => (
                <tr key={handle} data-link>
                  <td>
                    <a class="whole" href={`/console${identityPath(handle)}`}>
                      <bdi>{handle}</bdi>
                    </a>
                  </td>
                  <td>
                    <IdentityStatus status={status} />
                  </td>
                  <td class="mono">{email}</td>
                  <td>
                    <TunnelStatus connected={tunnel.connected} />
                  </td>
                  <td>{activityOf === undefined ? null : <Sparkline values={activityOf(handle)} />}</td>
                  <td class="muted">
                    <Time at={created_at} />
                  </td>
                </tr>
              ))}
            </Table>
          )
        }
      </Loaded>
    </Page>
  )
}

export default IdentitiesPage
