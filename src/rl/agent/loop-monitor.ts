import { printWarning } from "../../core/terminal-text.js";
import type { Metrics } from "../algorithms/learner.js";
import { ENTROPY_FLOOR, TrainingMonitor } from "../algorithms/training-monitor.js";
import { describeFirstRollout, FIRST_ROLLOUT_TURNS, type Remedies } from "../rollout/describe-first-rollout.js";
import type { Trajectory } from "../rollout/trajectory.js";

/** Turns of an episode after which it looks as if its end had been forgotten. */
const LONG_EPISODE = 2000;

const REMEDIES: Remedies = {
  rewards:
    "check that assignReward is called with the reward of each step, reward progress, shorten episodes, or start from demonstrations (sftWarmStart)",
  groups:
    "Reset the environment with the same seed for all episodes of a group, which follow each other (docs/algorithms/grpo.md#in-a-gym-loop), or train by PPO",
};

/** Warns of what keeps an agent in the user's loop from learning, as a Trainer does in its own. */
export class LoopMonitor {
  /** Trajectories of the first updates until there are enough for a judgment. */
  private first: Trajectory[] | undefined = [];
  private hasWarnedOfLength = false;
  private readonly training: TrainingMonitor;

  constructor(private readonly onWarning: (message: string) => void = printWarning) {
    this.training = new TrainingMonitor({ entropyFloor: ENTROPY_FLOOR, onWarning });
  }

  /** Checks the number of turns of an episode that has not ended. */
  checkEpisode(turns: number): void {
    if (turns < LONG_EPISODE || this.hasWarnedOfLength) return;
    this.hasWarnedOfLength = true;
    this.onWarning(
      `The episode has ${turns} turns and has not ended, and only episodes that ended are trained. Call terminateEpisode() when the environment is terminated or truncated.`,
    );
  }

  /** Checks the trajectories of an update; those of a group follow each other. */
  checkTrajectories(trajectories: readonly Trajectory[], groupSize: number | undefined): void {
    if (this.first === undefined) return;
    const offset = this.first.length;
    const toGroup = (i: number) => (groupSize === undefined ? undefined : Math.floor((offset + i) / groupSize));
    this.first.push(...trajectories.map((trajectory, i) => ({ ...trajectory, group: toGroup(i) })));
    if (this.first.reduce((sum, { turns }) => sum + turns.length, 0) < FIRST_ROLLOUT_TURNS) return;
    describeFirstRollout({ trajectories: this.first }, REMEDIES).forEach((problem) => this.onWarning(problem));
    this.first = undefined;
  }

  /** Checks the metrics of an update. */
  checkMetrics(metrics: Metrics): void {
    this.training.check(metrics);
  }
}
