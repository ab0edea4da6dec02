import { invalid } from "../algorithms/shared/settings.js";
import { choicesFor, type TextForm } from "../envs/text-form.js";
import type { Info } from "../envs/info.js";
import { compilePattern } from "../generation/constraints/pattern.js";
import type { LanguageModel } from "../generation/language-model.js";
import { failure, ofWholeReply, type Extraction } from "../rollout/extraction.js";
import { Agent } from "./agent.js";
import { byFunction, extractAction, within } from "./extraction/extraction.js";
import type { Extractor } from "./extraction/extractor.js";
import { regexMatch } from "./extraction/regex-match.js";
import { actionStrategies } from "./extraction/strategies.js";
import type { AgentOptions } from "./options.js";

export const REPLY_KINDS = ["free", "choices", "scored", "pattern"] as const;
export type ReplyKind = (typeof REPLY_KINDS)[number];

/** How a reply is held to a pattern. */
interface PatternSettings {
  readonly replies?: ReplyKind;
  readonly replyPattern?: string | RegExp;
}

export interface TextAgentOptions<Observation, Action> extends AgentOptions<Observation, Action> {
  /**
   * "choices" holds replies to those that the environment lists, where it does; "scored" draws one of these by its score, by the
   * tokens' mean unless actionScoring says otherwise; "pattern" holds them to replyPattern. Default "free".
   */
  readonly replies?: ReplyKind;
  /**
   * A regular expression that replies match as a whole, for replies: "pattern"; docs/constrained-decoding.md says what is supported.
   * What its group named `action` matches is the action's text, where it has one.
   */
  readonly replyPattern?: string | RegExp;
}

/** The agent for an environment that says itself how it reads as text. */
export class TextAgent<Observation = unknown, Action = unknown> extends Agent<Observation, Action> {
  private readonly replies: ReplyKind;
  private readonly pattern: string | RegExp | undefined;
  /** Finds the action's text in a reply of the pattern; undefined for a pattern that does not say where it is. */
  private readonly inPattern: Extractor<string> | undefined;

  /**
   * Throws INVALID_ARGUMENT as Agent does, and for a pattern that is missing, not supported, can never end, or needs more than
   * maxNewTokens; TOKENIZER_UNSUPPORTED for a pattern with a tokenizer that puts text between tokens.
   */
  constructor(
    model: LanguageModel,
    private readonly text: TextForm<Observation, Action>,
    { replies = "free", replyPattern, ...options }: TextAgentOptions<Observation, Action> = {},
  ) {
    const scoring = replies === "scored" ? { actionScoring: options.actionScoring ?? ("token" as const) } : {};
    super(model, undefined, { ...options, ...scoring });
    checkReplyPattern({ replies, replyPattern });
    this.replies = replies;
    this.pattern = replyPattern;
    if (replyPattern === undefined) return;
    this.inPattern = actionGroup(replyPattern);
    const { stop, ignoreEos } = options.generation ?? {};
    if (stop !== undefined || ignoreEos !== undefined)
      throw invalid("A reply ends where its replyPattern lets it; it cannot go with stop or ignoreEos.");
    model.patternConstraint(
      { regex: replyPattern },
      { start: "continued", maxTokens: this.settings.reply.maxNewTokens },
    );
  }

  override getSystemPrompt(): string {
    return this.text.systemPrompt;
  }

  override formatObservation(observation: Observation, info: Info): string {
    return this.text.formatObservation(observation, info);
  }

  /**
   * The action that the environment's own parser reads; where it reads none, what the reply says of the choices that the
   * environment lists, in any of the forms of `actionStrategies` but numbers. Of a reply held to a pattern with a group named
   * `action` the parser reads what that matches, and nothing else counts.
   */
  override extractAction(
    response: string,
    observation: Observation,
    info: Info,
  ): Action | Extraction<Action> | undefined {
    const parse = (text: string) => this.text.parseAction(text, observation, info);
    if (this.inPattern !== undefined) {
      const found = within(this.inPattern, byFunction(parse))(response);
      return ofWholeReply<Action>(found ?? failure("It does not match replyPattern."));
    }
    const value = parse(response);
    if (value !== undefined) return ofWholeReply<Action>({ kind: "parser", value });
    const choices = choicesFor(this.text, observation, info)?.filter((choice) => /[\p{L}\p{N}]/u.test(choice)) ?? [];
    if (choices.length === 0) return ofWholeReply<Action>(failure("The environment finds no action in it."));
    return extractAction(response, actionStrategies({ choices, numbers: false }, parse));
  }

  override getChoices(observation: Observation, info: Info): readonly string[] | undefined {
    if (this.replies === "free" || this.replies === "pattern") return undefined;
    const choices = choicesFor(this.text, observation, info);
    if (choices !== undefined && choices.length > 0) return [...new Set(choices)];
    throw invalid(
      'This environment does not list the replies that are possible, so replies cannot be held to choices; use replies: "free".',
    );
  }

  override getPattern(): string | RegExp | undefined {
    return this.pattern;
  }
}

/**
 * Throws INVALID_ARGUMENT for a pattern without replies: "pattern", the other way round, and for one that is not supported or
 * allows no reply. It needs no model.
 */
export function checkReplyPattern({ replies, replyPattern }: PatternSettings): void {
  if (replies === "pattern" && replyPattern === undefined)
    throw invalid('Replies are held to a pattern, but there is none: give replyPattern, such as "Action: (hit|stay)".');
  if (replyPattern === undefined) return;
  if (replies !== "pattern") throw invalid('replyPattern holds replies with replies: "pattern" only; set both.');
  compilePattern({ regex: replyPattern });
}

/** What a pattern's group named `action` matches; undefined for a pattern without one. */
function actionGroup(pattern: string | RegExp): Extractor<string> | undefined {
  const source = typeof pattern === "string" ? pattern : pattern.source;
  // An expression that may be empty matches anything, and tells its groups.
  const { groups = {} } = new RegExp(`${source}|`, "u").exec("")!;
  if (!Object.hasOwn(groups, "action")) return undefined;
  const flags = typeof pattern === "string" || !pattern.flags.includes("s") ? "u" : "su";
  return regexMatch(new RegExp(`^(?:${source})$`, flags));
}
