import { formatCount } from "../../../core/format.js";
import { findAlgorithm } from "../../runs/load-algorithm.js";
import type { Run } from "../../runs/run.js";

/** Describes a run before it trains; `where` is such as "in blackjack". */
export function describeStart(
  {
    config,
    folder,
    isResumed,
    resumedAt,
    hasCheckpoint = resumedAt > 0,
  }: Pick<Run, "config" | "folder" | "isResumed" | "resumedAt"> & Partial<Pick<Run, "hasCheckpoint">>,
  where: string,
): string {
  const { model, batchSize, minTurns = 0 } = config;
  const { algorithmName, hasCritic: countsTurns } = findAlgorithm(config.algorithm);
  const limits = (["episodes", "turns"] as const).flatMap((name) =>
    config[name] === undefined ? [] : [`${formatCount(config[name])} ${name}`],
  );
  const episodes = `${formatCount(batchSize!)} episodes`;
  const [update, ending] = countsTurns
    ? [`${formatCount(batchSize!)} turns`, "completed"]
    : [
        minTurns > 0 ? `at least ${episodes} and ${formatCount(minTurns)} turns` : episodes,
        "shortened to whole groups",
      ];
  return [
    describeFolder({ folder, isResumed, resumedAt, hasCheckpoint }),
    `Training ${model} ${where} with ${algorithmName}: ${limits.join(" or ")}, updates of ${update} (the last one is ${ending}).`,
  ].join("\n");
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
