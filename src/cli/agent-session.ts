import type { TextAgent } from "../agent/text-agent.js";
import type { Env } from "../envs/index.js";
import { LlamaGymError } from "../errors.js";
import { RandomStream } from "../tensor/random.js";
import type { Turn } from "../rollout/turn.js";
import { Play, rounded } from "./play-session.js";

interface SessionOptions {
  readonly episodes: number;
  /** Whether replies are drawn as in training, or the most probable ones. */
  readonly mode: "train" | "eval";
  /** The same seed gives the same episodes and replies. */
  readonly seed: number | undefined;
  /** Whether the text form is shown where there is a picture in letters too. */
  readonly showsText: boolean;
  readonly print: (line: string) => void;
  /** Told what is not part of the game. */
  readonly tell: (line: string) => void;
}

/** A language model's game, shown turn by turn: what it is shown, what it replies, and what comes of it. */
export class AgentSession {
  private readonly play: Play;
  private readonly random: RandomStream;
  private replies = 0;
  private understood = 0;
  /** Of these, those that the environment's own parser did not understand. */
  private extracted = 0;
  /** The reply as it was last shown. */
  private said = "";

  constructor(
    private readonly env: Env,
    private readonly agent: TextAgent,
    private readonly options: SessionOptions,
  ) {
    // Some games repeat the command before their answer.
    const print = (text: string) =>
      options.print(text.startsWith(`${this.said}\n`) ? text.slice(this.said.length + 1) : text);
    this.play = new Play(env, { ...options, print });
    this.random = new RandomStream(options.seed);
  }

  /** Plays all episodes, then tells the mean return and how many replies were actions. */
  async run(): Promise<void> {
    const { play } = this;
    const { episodes, print, seed } = this.options;
    let total = 0;
    let steps = 0;
    for (let episode = 0; episode < episodes; episode++) {
      if (episodes > 1) print(`${episode > 0 ? "\n" : ""}Episode ${episode + 1} of ${episodes}.`);
      // A seed tells all episodes after it too.
      await play.reset(episode === 0 ? seed : undefined);
      await this.playEpisode();
      total += play.total;
      steps += play.steps;
    }
    if (episodes > 1) {
      print(`\nMean return ${rounded(total / episodes)}, ${rounded(steps / episodes)} steps, of ${episodes} episodes.`);
    }
    const guessed = this.extracted === 0 ? "" : `, ${this.extracted} of them by extraction`;
    print(`${this.understood} of ${this.replies} replies were actions${guessed}.`);
  }

  private async playEpisode(): Promise<void> {
    const { agent, play, random, options } = this;
    const playthrough = agent.playthrough(random, options.mode);
    let forgotten = 0;
    while (!play.isOver) {
      const { observation, info } = play.situation;
      playthrough.observe(observation, info);
      const { action, turn } = await playthrough.reply();
      if (playthrough.forgottenTurns > forgotten) {
        const count = playthrough.forgottenTurns - forgotten;
        options.tell(`(The context is full: the oldest ${count === 1 ? "turn was" : `${count} turns were`} left out.)`);
        forgotten = playthrough.forgottenTurns;
      }
      this.replies++;
      if (turn.isValid) this.understood++;
      if (turn.isValid && turn.extraction !== "parser") this.extracted++;
      await this.take(turn, action);
    }
  }

  private async take({ text, isValid, extraction }: Turn, action: unknown): Promise<void> {
    const { env, play, options } = this;
    this.said = `> ${text.trim().replaceAll("\n", "\n  ")}`;
    options.print(this.said);
    const name = env.text?.formatAction(action) ?? String(action);
    if (isValid && extraction !== "parser") options.print(`Taken for: ${name} (${extraction})`);
    if (!isValid) {
      options.print(`That is no action here; at random: ${name}`);
      this.said = `> ${name}`;
    }
    const refusal = await play.step(action);
    if (refusal !== undefined) throw new LlamaGymError("ENV_INVALID", `The action was refused: ${refusal}`);
  }
}
