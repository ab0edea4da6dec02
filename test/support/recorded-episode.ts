import type { EpisodeDetail, TurnDetail } from "../../src/rl/tracking/rollouts/rollout-record.js";

/** A recorded turn of one token, with the given fields. */
export const recordedTurn = (fields: Partial<TurnDetail> = {}): TurnDetail => ({
  step: 1,
  observation: "",
  render: null,
  prompt: [1],
  tokens: [2],
  text: "x",
  finishReason: "stop",
  isValid: true,
  extraction: null,
  action: null,
  reward: 1,
  returnToGo: 1,
  value: null,
  advantage: null,
  logProbs: [-1],
  refLogProbs: null,
  entropies: null,
  values: null,
  advantages: null,
  returns: null,
  ratios: null,
  clipped: null,
  marks: "t",
  allowedCounts: null,
  alternatives: null,
  candidates: null,
  ...fields,
});

/** A recorded episode of one turn, the first of update `step`, that won 1. */
export const recordedEpisode = (step: number, turn: TurnDetail): Omit<EpisodeDetail, "vocabulary"> => ({
  row: {
    id: `${step}.0`,
    step,
    envSlot: 0,
    group: 0,
    return: 1,
    turns: 1,
    tokens: turn.tokens.length,
    end: "terminated",
    startsEpisode: true,
    seed: 1,
    advantage: turn.advantage,
    hasSignal: true,
  },
  turns: [turn],
  final: { observation: turn.observation, render: turn.render },
});
