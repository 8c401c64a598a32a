/** Settings of a runner in tests of the membership. */
import { Timing } from "@svc/cluster/Timing"
import { Layer, Option } from "effect"
import { RunnerAddress, ShardingConfig } from "effect/cluster"

const never = "10000 days"
export const addressOf = (port: number) => RunnerAddress.make("127.0.0.1", port)
export const config = (port: number) =>
  Layer.succeed(ShardingConfig.ShardingConfig, {
    ...ShardingConfig.defaults,
    runnerAddress: Option.some(addressOf(port)),
    shardsPerGroup: 99,
    shardLockExpiration: "1 hour",
    shardLockRefreshInterval: Timing.shardLockRefresh,
    refreshAssignmentsInterval: Timing.refreshAssignments,
    entityMessagePollInterval: never,
    runnerHealthCheckInterval: never,
  })
