import { boolean, defineSettings, integer } from "../../../core/settings.js";
import { invalidArgument } from "../../../core/errors.js";

/** Settings of an update with groups of complete episodes. */
export const updateSettings = defineSettings({
  batchSize: integer({
    default: 8,
    min: 1,
    description: "Number of episodes (completions, for prompts) per update.",
    source: "TRL 1.16 and ORLLLaM",
  }),
  minTurns: integer({
    default: 0,
    min: 0,
    description: "Minimum number of turns per update; more episodes are collected if they are short.",
    source: "off, as in TRL 1.16",
  }),
  miniBatchSize: integer({
    min: 1,
    description: "Number of turns per optimizer step. Default: all turns of the update.",
    source: "one step, as in TRL 1.16",
  }),
  filterGroups: boolean({
    default: true,
    description: "Drop groups with equal returns, unless an entropy bonus or a KL term acts on them.",
    source: "DAPO, not in TRL 1.16",
  }),
  maxResamples: integer({
    default: 1,
    min: 0,
    description: "Maximum number of times dropped groups are resampled.",
    source: "DAPO, not in TRL 1.16",
  }),
  maskTruncatedEpisodes: boolean({
    description: "Exclude episodes that were truncated by a step limit from the loss.",
    source: "DAPO's overlong filtering, off in TRL 1.16",
  }),
});

/**
 * Resolves an update's size to whole groups; by default the smallest multiple of the group size that is not below
 * `defaultSize`.
 * @throws INVALID_ARGUMENT for a size that is no multiple of the group size.
 */
export function resolveBatchSize(
  algorithm: string,
  requested: number | undefined,
  groupSize: number,
  defaultSize: number,
): number {
  if (requested === undefined) return Math.ceil(defaultSize / groupSize) * groupSize;
  if (requested % groupSize === 0) return requested;
  throw invalidArgument(
    `${algorithm}'s batchSize is ${requested}, which groups of ${groupSize} (numGenerations) do not divide. ` +
      `Use ${Math.ceil(requested / groupSize) * groupSize}, or another group size.`,
  );
}
