import { invalidArgument } from "../../../core/settings.js";

/** What an update of an algorithm without a critic is made of. */
export const updateSettings = {
  batchSize: {
    default: 8,
    integer: true,
    min: 1,
    description: "episodes (or replies) that are collected for an update",
    source: "TRL 1.16 and ORLLLaM",
  },
  minTurns: {
    default: 0,
    integer: true,
    min: 0,
    description: "turns that an update has at least: where episodes are short more of them are collected",
    source: "off, as in TRL 1.16",
  },
  miniBatchSize: {
    default: undefined,
    integer: true,
    min: 1,
    description: "turns of one optimiser step; all of the update's by default",
    source: "one step, as in TRL 1.16",
  },
  filterGroups: {
    default: true,
    description:
      "groups whose episodes earned all the same are left out, unless an entropy bonus or a divergence acts on them",
    source: "DAPO, not in TRL 1.16",
  },
  maxResamples: {
    default: 1,
    integer: true,
    min: 0,
    description: "times that other groups are played in place of those left out",
    source: "DAPO, not in TRL 1.16",
  },
  maskTruncatedEpisodes: {
    default: false,
    description: "episodes that were cut off by a step limit do not train the policy",
    source: "DAPO's overlong filtering, off in TRL 1.16",
  },
} as const;

/**
 * An update's size: whole groups. Where it was not given it is the smallest multiple of the group size that is no less than usual.
 * Throws INVALID_ARGUMENT for one that the group size does not divide.
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
