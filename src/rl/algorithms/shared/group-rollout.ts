import type { RolloutRequest } from "../algorithm-definition.js";

interface GroupRolloutConfig {
  readonly batchSize: number;
  readonly minTurns: number;
  readonly filterGroups: boolean;
  readonly maxResamples: number;
}

/**
 * Requests the groups of an update. Groups without signal are resampled where the advantage is
 * relative to the group alone (dynamic sampling, DAPO).
 */
export function groupRollout(
  { batchSize, minTurns, filterGroups, maxResamples }: GroupRolloutConfig,
  { groupSize, isGroupRelative }: { readonly groupSize: number; readonly isGroupRelative: boolean },
): RolloutRequest {
  const canResample = filterGroups && isGroupRelative;
  return {
    kind: "groups",
    groups: batchSize / groupSize,
    groupSize,
    minTurns,
    maxResamples: canResample ? maxResamples : 0,
  };
}
