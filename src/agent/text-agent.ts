import { choicesFor, type TextForm } from "../envs/text-form.js";
import type { Info } from "../envs/info.js";
import { LlamaGymError } from "../errors.js";
import type { LanguageModel } from "../generation/language-model.js";
import { failure, ofWholeReply, type Extraction } from "../rollout/extraction.js";
import { Agent } from "./agent.js";
import { extractAction } from "./extraction/extraction.js";
import { actionStrategies } from "./extraction/strategies.js";
import type { AgentOptions } from "./options.js";

export const REPLY_KINDS = ["free", "choices", "scored"] as const;
export type ReplyKind = (typeof REPLY_KINDS)[number];

export interface TextAgentOptions<Observation, Action> extends AgentOptions<Observation, Action> {
  /**
   * "choices" holds replies to those that the environment lists, where it does; "scored" draws one of these by its score, by the
   * tokens' mean unless actionScoring says otherwise. Default "free".
   */
  readonly replies?: ReplyKind;
}

/** The agent for an environment that says itself how it reads as text. */
export class TextAgent<Observation = unknown, Action = unknown> extends Agent<Observation, Action> {
  private readonly replies: ReplyKind;

  /** Throws INVALID_ARGUMENT as Agent does. */
  constructor(
    model: LanguageModel,
    private readonly text: TextForm<Observation, Action>,
    { replies = "free", ...options }: TextAgentOptions<Observation, Action> = {},
  ) {
    const scoring = replies === "scored" ? { actionScoring: options.actionScoring ?? ("token" as const) } : {};
    super(model, undefined, { ...options, ...scoring });
    this.replies = replies;
  }

  override getSystemPrompt(): string {
    return this.text.systemPrompt;
  }

  override formatObservation(observation: Observation, info: Info): string {
    return this.text.formatObservation(observation, info);
  }

  /**
   * The action that the environment's own parser reads; where it reads none, what the reply says of the choices that the
   * environment lists, in any of the forms of `actionStrategies` but numbers.
   */
  override extractAction(
    response: string,
    observation: Observation,
    info: Info,
  ): Action | Extraction<Action> | undefined {
    const parse = (text: string) => this.text.parseAction(text, observation, info);
    const value = parse(response);
    if (value !== undefined) return ofWholeReply<Action>({ kind: "parser", value });
    const choices = choicesFor(this.text, observation, info)?.filter((choice) => /[\p{L}\p{N}]/u.test(choice)) ?? [];
    if (choices.length === 0) return ofWholeReply<Action>(failure("The environment finds no action in it."));
    return extractAction(response, actionStrategies({ choices, numbers: false }, parse));
  }

  override getChoices(observation: Observation, info: Info): readonly string[] | undefined {
    if (this.replies === "free") return undefined;
    const choices = choicesFor(this.text, observation, info);
    if (choices !== undefined && choices.length > 0) return [...new Set(choices)];
    throw new LlamaGymError(
      "INVALID_ARGUMENT",
      'This environment does not list the replies that are possible, so replies cannot be held to choices; use replies: "free".',
    );
  }
}
