import type { TextAgent } from "../../../rl/agent/text-agent.js";
import type { Env } from "../../../envs/index.js";
import { LlamaGymError } from "../../../core/errors.js";
import { RandomStream } from "../../../core/random/random-stream.js";
import type { Turn } from "../../../rl/rollout/trajectory.js";
import { InteractiveEpisode, formatReturn } from "./interactive-episode.js";

interface AgentEpisodePlayerOptions {
  readonly episodes: number;
  /** Whether replies are drawn as in training, or the most probable ones. */
  readonly mode: "train" | "eval";
  /** The same seed gives the same episodes and replies. */
  readonly seed: number | undefined;
  /** Whether the text form is shown where there is a picture in letters too. */
  readonly showText: boolean;
  readonly print: (line: string) => void;
  /** Told what is not part of the game. */
  readonly info: (line: string) => void;
}

/** A language model's game, shown turn by turn: what it is shown, what it replies, and what comes of it. */
export class AgentEpisodePlayer {
  private readonly currentEpisode: InteractiveEpisode;
  private readonly random: RandomStream;
  private completionCount = 0;
  private validCount = 0;
  /** Of these, those that the environment's own parser did not understand. */
  private extractedCount = 0;
  /** The reply as it was last shown. */
  private lastCompletion = "";

  constructor(
    private readonly env: Env,
    private readonly agent: TextAgent,
    private readonly options: AgentEpisodePlayerOptions,
  ) {
    // Some games repeat the command before their answer.
    const print = (text: string) =>
      options.print(text.startsWith(`${this.lastCompletion}\n`) ? text.slice(this.lastCompletion.length + 1) : text);
    this.currentEpisode = new InteractiveEpisode(env, { ...options, print });
    this.random = new RandomStream(options.seed);
  }

  /** Plays all episodes, then tells the mean return and how many replies were actions. */
  async run(): Promise<void> {
    const { currentEpisode } = this;
    const { episodes, print, seed } = this.options;
    let totalReturn = 0;
    let totalSteps = 0;
    for (let episode = 0; episode < episodes; episode++) {
      if (episodes > 1) print(`${episode > 0 ? "\n" : ""}Episode ${episode + 1} of ${episodes}.`);
      // A seed tells all episodes after it too.
      await currentEpisode.reset(episode === 0 ? seed : undefined);
      await this.playEpisode();
      totalReturn += currentEpisode.episodeReturn;
      totalSteps += currentEpisode.steps;
    }
    if (episodes > 1) {
      print(
        `\nMean return ${formatReturn(totalReturn / episodes)}, ${formatReturn(totalSteps / episodes)} steps, of ${episodes} episodes.`,
      );
    }
    const extractedNote = this.extractedCount === 0 ? "" : `, ${this.extractedCount} of them by extraction`;
    print(`${this.validCount} of ${this.completionCount} replies were actions${extractedNote}.`);
  }

  private async playEpisode(): Promise<void> {
    const { agent, currentEpisode, random, options } = this;
    const agentEpisode = agent.newEpisode(random, options.mode);
    let droppedTurns = 0;
    while (!currentEpisode.isDone) {
      const { observation, info } = currentEpisode.pendingObservation;
      agentEpisode.observe(observation, info);
      const { action, turn } = await agentEpisode.act();
      if (agentEpisode.droppedTurns > droppedTurns) {
        const count = agentEpisode.droppedTurns - droppedTurns;
        options.info(`(The context is full: the oldest ${count === 1 ? "turn was" : `${count} turns were`} left out.)`);
        droppedTurns = agentEpisode.droppedTurns;
      }
      this.completionCount++;
      if (turn.isValid) this.validCount++;
      if (turn.isValid && turn.extraction !== "parser") this.extractedCount++;
      await this.applyAction(turn, action);
    }
  }

  private async applyAction({ text, isValid, extraction }: Turn, action: unknown): Promise<void> {
    const { env, currentEpisode, options } = this;
    this.lastCompletion = `> ${text.trim().replaceAll("\n", "\n  ")}`;
    options.print(this.lastCompletion);
    const actionText = env.text?.formatAction(action) ?? String(action);
    if (isValid && extraction !== "parser") options.print(`Taken for: ${actionText} (${extraction})`);
    if (!isValid) {
      options.print(`That is no action here; at random: ${actionText}`);
      this.lastCompletion = `> ${actionText}`;
    }
    const rejection = await currentEpisode.step(action);
    if (rejection !== undefined) throw new LlamaGymError("ENV_INVALID", `The action was refused: ${rejection}`);
  }
}
