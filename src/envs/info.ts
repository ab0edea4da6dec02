/**
 * Auxiliary information in addition to the observation, for people and logs rather than the policy.
 * A boolean `is_success` in the info of an episode's last step is counted as
 * `rollout/success_rate`, as Stable-Baselines3 does.
 */
export type Info = Record<string, unknown>;
