/** What an environment tells besides its observation: for people and logs, not for the policy. */
export type Info = Record<string, unknown>;
