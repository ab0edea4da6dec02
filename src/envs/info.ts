/**
 * Auxiliary information in addition to the observation, for people and logs rather than the policy.
 */
export type Info = Record<string, unknown>;
