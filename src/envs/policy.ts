import type { Info } from "./info.js";

/** Chooses an action for an observation. */
export type Policy<Observation = unknown, Action = unknown> = (observation: Observation, info: Info) => Action;
