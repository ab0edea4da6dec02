import type { RolloutRequest } from "../algorithm-definition.js";

interface GroupRolloutConfig {
  readonly batchSize: number;
  readonly minTurns: number;
  readonly filterGroups: boolean;
  readonly maxRefills: number;
}

/**
 * Requests the groups of an update. Groups without signal are resampled where the advantage is relative to the group alone
 * (dynamic sampling, DAPO).
 */
export function groupRollout(
  { batchSize, minTurns, filterGroups, maxRefills }: GroupRolloutConfig,
  { groupSize, isGroupRelative }: { readonly groupSize: number; readonly isGroupRelative: boolean },
): RolloutRequest {
  const maxResamples = filterGroups && isGroupRelative ? maxRefills : 0;
  return { kind: "groups", groups: batchSize / groupSize, groupSize, minTurns, maxResamples };
}
