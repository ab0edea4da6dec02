import { RandomStream, type Seed } from "./random-stream.js";

/**
 * The independent streams of a run's seed: the number and the count of indices of each one's spawn
 * key.
 */
export const STREAMS = {
  /** Minibatches and dropout of the learner. */
  learner: [1, 0],
  /** Order of the examples of SFT, by epoch. */
  sftOrder: [1, 1],
  /** Completions of a rollout, by environment slot. */
  rollout: [2, 1],
  /** Seeds of the episodes of a rollout. */
  episodeStarts: [3, 0],
  /** Seeds of the episodes of an evaluation. */
  evaluationStarts: [5, 0],
  /** Completions of an evaluation, by environment slot. */
  evaluation: [5, 1],
  /** Seed of the evaluations during training. */
  trainingEvaluation: [15, 0],
  /** Actions of recorded demonstrations, by episode. */
  demonstrations: [6, 1],
  /** Split of SFT examples into training and evaluation. */
  sftSplit: [7, 0],
  /** Turns drawn from the replay buffer. */
  replay: [8, 0],
  /** Order of the prompts of GrpoTrainer and RlooTrainer, by epoch. */
  promptOrder: [8, 1],
  /** Order of the turns of a warm start. */
  warmStartOrder: [9, 0],
  /** Completions of GrpoTrainer and RlooTrainer, by their number. */
  promptCompletions: [9, 1],
  /** Draws of a sweep, by trial. */
  sweepDraws: [10, 1],
  /** Dropout of SFT, by step. */
  sftDropout: [11, 1],
  /** Completions of `Agent.act`. */
  act: [12, 0],
  /** Completions of a gateway's sessions, by session. */
  sessions: [14, 1],
  /** Episodes of `llamagym play --agent`. */
  play: [13, 0],
} as const satisfies Readonly<Record<string, readonly [number: number, indices: 0 | 1]>>;

type StreamName = keyof typeof STREAMS;
type StreamIndices<Name extends StreamName> = (typeof STREAMS)[Name][1] extends 0 ? [] : [index: number];

/**
 * Returns a named stream of a seed, or of system entropy without one. Weight initialization
 * and single generations use the seed's root stream instead.
 */
export function stream<Name extends StreamName>(
  seed: Seed | undefined,
  name: Name,
  ...indices: StreamIndices<Name>
): RandomStream {
  return new RandomStream(seed, [STREAMS[name][0], ...indices]);
}
