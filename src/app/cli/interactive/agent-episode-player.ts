import type { TextAgent } from "../../../rl/agent/index.js";
import type { Env } from "../../../envs/index.js";
import { LlamaGymError } from "../../../core/errors.js";
import type { RandomStream } from "../../../core/random/random-stream.js";
import { stream } from "../../../core/random/streams.js";
import type { Turn } from "../../../rl/rollout/index.js";
import { InteractiveEpisode, formatReturn } from "./interactive-episode.js";

interface AgentEpisodePlayerOptions {
  readonly episodes: number;
  /** Sampled ("train") or greedy ("eval") completions. */
  readonly mode: "train" | "eval";
  /** The same seed gives the same episodes and completions. */
  readonly seed: number | undefined;
  /** Show the text interface even if the environment renders text art. */
  readonly showText: boolean;
  readonly print: (line: string) => void;
  /** Prints a rendering, which may have colors. */
  readonly printRendering: (rendering: string) => void;
  /** Receives messages about the run. */
  readonly info: (line: string) => void;
}

/**
 * Plays episodes with a language model and shows every turn: observation, completion and result.
 */
export class AgentEpisodePlayer {
  private readonly currentEpisode: InteractiveEpisode;
  private readonly random: RandomStream;
  private completionCount = 0;
  private validCount = 0;
  /** Valid completions that the environment's own parser could not read. */
  private extractedCount = 0;
  /** The completion as last printed. */
  private lastCompletion = "";

  constructor(
    private readonly env: Env,
    private readonly agent: TextAgent,
    private readonly options: AgentEpisodePlayerOptions,
  ) {
    // Some environments repeat the command at the start of their observation.
    const withoutCommand = (text: string) =>
      text.startsWith(`${this.lastCompletion}\n`) ? text.slice(this.lastCompletion.length + 1) : text;
    this.currentEpisode = new InteractiveEpisode(env, {
      ...options,
      settings: agent.settings,
      print: (text) => options.print(withoutCommand(text)),
      printRendering: (text) => options.printRendering(withoutCommand(text)),
    });
    this.random = stream(options.seed, "play");
  }

  /** Plays all episodes, then prints the mean return and the number of valid completions. */
  async run(): Promise<void> {
    const { currentEpisode } = this;
    const { episodes, print, seed } = this.options;
    let totalReturn = 0;
    let totalSteps = 0;
    for (let episode = 0; episode < episodes; episode++) {
      if (episodes > 1) print(`${episode > 0 ? "\n" : ""}Episode ${episode + 1} of ${episodes}.`);
      // Later episodes follow from the first seed.
      await currentEpisode.reset(episode === 0 ? seed : undefined);
      await this.playEpisode();
      totalReturn += currentEpisode.runner.episodeReturn;
      totalSteps += currentEpisode.runner.steps;
    }
    if (episodes > 1) {
      print(
        `\n${episodes} episodes: mean return ${formatReturn(totalReturn / episodes)}, ${formatReturn(totalSteps / episodes)} steps on average.`,
      );
    }
    const extractedNote = this.extractedCount === 0 ? "" : `, ${this.extractedCount} of them by extraction`;
    print(`${this.validCount} of ${this.completionCount} completions were valid actions${extractedNote}.`);
  }

  private async playEpisode(): Promise<void> {
    const { agent, random, options } = this;
    const { runner } = this.currentEpisode;
    const agentEpisode = agent.newEpisode(random, options.mode);
    let droppedTurns = 0;
    while (!runner.isDone) {
      agentEpisode.observe(runner.observation, runner.info);
      const { action, turn } = await agentEpisode.act();
      if (agentEpisode.droppedTurns > droppedTurns) {
        const count = agentEpisode.droppedTurns - droppedTurns;
        options.info(`(Context full: dropped the oldest ${count === 1 ? "turn" : `${count} turns`}.)`);
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
    if (isValid && extraction !== "parser") options.print(`Action: ${actionText} (${extraction})`);
    if (!isValid) {
      options.print(`Not a valid action; random action: ${actionText}`);
      this.lastCompletion = `> ${actionText}`;
    }
    const rejection = await currentEpisode.step(action);
    if (rejection !== undefined)
      throw new LlamaGymError("ENV_INVALID", `The environment rejected the action: ${rejection}`);
  }
}
