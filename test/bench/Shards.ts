/**
 * `node test/bench/Shards.ts [runners ...]` prints how evenly Identities are distributed over the runners of a cluster,
 * computed with the hashing of the library (`Sharding` and `HashRing`).
 */
import { shardsPerGroup } from "@svc/cluster/Cluster"
import { Effect, HashRing, Layer } from "effect"
import {
  EntityId,
  MessageStorage,
  RunnerAddress,
  RunnerHealth,
  Runners,
  RunnerStorage,
  Sharding,
  ShardingConfig,
} from "effect/cluster"

const identities = 1_000_000
const runnersPort = 34_431

/** Numbers of shards to compare: ours, the library's default, and more. */
const shardCounts = [shardsPerGroup, 300, 4_096, 16_384]

/** Returns distinct short names that resemble real ones. */
const nameOf = (n: number) => `agent${n.toString(36)}`

/** Returns the number of Identities per shard. */
const peopled = (shards: number) =>
  Effect.gen(function* () {
    const sharding = yield* Sharding.Sharding
    const counts = Array.from({ length: shards }, () => 0)
    for (let n = 0; n < identities; n++) {
      counts[sharding.getShardId(EntityId.make(nameOf(n)), "default").id - 1]!++
    }
    return counts
  }).pipe(
    Effect.provide(
      Sharding.layer.pipe(
        Layer.provide([Runners.layerNoop, RunnerHealth.layerNoop]),
        Layer.provide([MessageStorage.layerNoop, RunnerStorage.layerMemory]),
        Layer.provide(ShardingConfig.layer({ shardsPerGroup: shards })),
      ),
    ),
    Effect.scoped,
  )

/** Returns a hash ring of runners with addresses like those of pods. */
const ring = (runners: number) =>
  HashRing.make<RunnerAddress.RunnerAddress>().pipe(
    HashRing.addMany(
      Array.from({ length: runners }, (_, n) =>
        RunnerAddress.make(`10.${n >> 16}.${(n >> 8) & 255}.${n & 255}`, runnersPort),
      ),
    ),
  )

interface Spread {
  readonly idle: number
  readonly shards: string
  readonly identities: string
}

const ratio = (counts: ReadonlyArray<number>) =>
  (Math.max(...counts) / (counts.reduce((sum, count) => sum + count, 0) / counts.length)).toFixed(2)

const spread = (runners: number, counts: ReadonlyArray<number>): Spread => {
  const ofRunner = new Map<string, { shards: number; identities: number }>()
  const owners = HashRing.getShards(ring(runners), counts.length)!
  for (const [shard, { host }] of owners.entries()) {
    const held = ofRunner.get(host) ?? { shards: 0, identities: 0 }
    ofRunner.set(host, { shards: held.shards + 1, identities: held.identities + counts[shard]! })
  }
  const idle = runners - ofRunner.size
  const all = [...ofRunner.values(), ...Array.from({ length: idle }, () => ({ shards: 0, identities: 0 }))]
  return { idle, shards: ratio(all.map((one) => one.shards)), identities: ratio(all.map((one) => one.identities)) }
}

const given = process.argv.slice(2).map(Number)
const runnerCounts = given.length > 0 ? given : [3, 10, 30, 64, 100, 1_000]

console.log(`${identities.toLocaleString("en")} Identities; max/mean per runner, those without a shard among them`)
console.log("| shards | runners | runners without a shard | shards, max/mean | Identities, max/mean |")
console.log("|---|---|---|---|---|")
for (const shards of shardCounts) {
  const counts = await Effect.runPromise(peopled(shards))
  for (const runners of runnerCounts) {
    const { idle, shards: ofShards, identities: ofIdentities } = spread(runners, counts)
    console.log(`| ${shards} | ${runners} | ${idle} | ${ofShards} | ${ofIdentities} |`)
  }
}
