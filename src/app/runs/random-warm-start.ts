/** Value of sftWarmStart for a warm start on random actions: a policy that has seen each of them explores. */
export const RANDOM_WARM_START = "random";

/** Random turns of that warm start. */
export const RANDOM_WARM_START_TURNS = 1024;
