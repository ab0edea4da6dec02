import { LazyPromise } from "../../core/promise-cache.js";
import { type LanguageModel, AutoModelForCausalLM } from "../../generation/index.js";
import { judge, type Judge, type JudgedConversation } from "./judge.js";
import { checkJudge, type JudgeConfig } from "./judge-settings.js";

/** Highest score of the rubric's scale, which becomes 1. */
const MAX_SCORE = 10;

/** The judge of a run's episodes. A local model is loaded at the first score. */
export class EpisodeJudge {
  private model: LanguageModel | undefined;
  private readonly opened = new LazyPromise(() => this.open());
  private current: Judge | undefined;

  /** @throws INVALID_ARGUMENT for a judge without a rubric, and the reverse. */
  static create(config: JudgeConfig, onWarning: (message: string) => void): EpisodeJudge | undefined {
    checkJudge(config);
    return config.judge === undefined ? undefined : new EpisodeJudge(config, config.judge, onWarning);
  }

  private constructor(
    private readonly config: JudgeConfig,
    private readonly name: string,
    private readonly onWarning: (message: string) => void,
  ) {}

  /**
   * Returns a score from 0 to 1; 0 where the judge fails. @throws as `fromPretrained` for a local
   * model.
   */
  async score(messages: JudgedConversation["messages"]): Promise<number> {
    const opened = await this.opened.get();
    return (await opened.score({ messages })) / MAX_SCORE;
  }

  /** Returns the judge's metrics since the last call; none if it was not asked. */
  takeMetrics(): Record<string, number> {
    const metrics = this.current?.takeMetrics() ?? {};
    return Object.values(metrics).some((value) => value > 0) ? metrics : {};
  }

  async close(): Promise<void> {
    await this.opened.peek()?.catch(() => {});
    await this.model?.close();
  }

  private async open(): Promise<Judge> {
    const { judgeUrl: baseURL, judgeRubric: rubric = "" } = this.config;
    if (baseURL === undefined) this.model = await AutoModelForCausalLM.fromPretrained(this.name);
    const model = this.model ?? this.name;
    return (this.current = judge({ model, baseURL, rubric, max: MAX_SCORE, onWarning: this.onWarning }));
  }
}
