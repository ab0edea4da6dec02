import { formatCount } from "../../../core/format.js";
import type { RolloutRequest } from "../../../rl/algorithms/index.js";
import { configureAlgorithm } from "../../runs/algorithm-settings.js";
import type { Run } from "../../runs/run.js";

/** Describes a run before it trains; `where` is such as "in blackjack". */
export function describeStart(
  {
    config,
    folder,
    isResumed,
    resumedAt,
    hasCheckpoint = resumedAt > 0,
    resumesWarmStart = false,
  }: Pick<Run, "config" | "folder" | "isResumed" | "resumedAt"> &
    Partial<Pick<Run, "hasCheckpoint" | "resumesWarmStart">>,
  where: string,
): string {
  const { name, rollout } = configureAlgorithm(config).algorithm;
  const limits = (["episodes", "turns"] as const).flatMap((unit) =>
    config[unit] === undefined ? [] : [`${formatCount(config[unit])} ${unit}`],
  );
  return [
    describeFolder({ folder, isResumed, resumedAt, hasCheckpoint: hasCheckpoint || resumesWarmStart }),
    `Training ${config.model} ${where} with ${name}: ${limits.join(" or ")}${describeUpdates(rollout())}.`,
  ].join("\n");
}

/** Describes the rollout of an update; empty for an algorithm with its own update. */
function describeUpdates(rollout: RolloutRequest | undefined): string {
  if (rollout === undefined) return "";
  if (rollout.kind === "turns") return `, updates of ${formatCount(rollout.turns)} turns (the last one is completed)`;
  const { groups, groupSize, minTurns = 0 } = rollout;
  const episodes = `${formatCount(groups * groupSize)} episodes`;
  const size = minTurns > 0 ? `at least ${episodes} and ${formatCount(minTurns)} turns` : episodes;
  return `, updates of ${size} (the last one is shortened to whole groups)`;
}

/** Describes where a run starts. */
export function describeFolder({
  folder,
  isResumed,
  resumedAt,
  hasCheckpoint,
}: Pick<Run, "folder" | "isResumed" | "resumedAt" | "hasCheckpoint">): string {
  if (hasCheckpoint) return `Resuming ${folder} from ${resumedAt > 0 ? `update ${resumedAt}` : "its warm start"}.`;
  return isResumed ? `Restarting ${folder}, which has no checkpoint yet.` : `Run folder: ${folder}`;
}
