import { invalidArgument } from "../../core/errors.js";
import { getChoices, type TextInterface } from "../../envs/text-interface.js";
import type { Info } from "../../envs/info.js";
import { compileToByteAutomaton } from "../../generation/constraints/text-pattern.js";
import type { LanguageModel } from "../../generation/language-model.js";
import { extractionFailure, fromWholeCompletion, type Extraction } from "../rollout/extraction.js";
import { Agent } from "./agent.js";
import { fromFunction, extractAction, refine } from "./extraction/extract-action.js";
import type { Extractor } from "./extraction/extractor.js";
import { regexMatch } from "./extraction/regex-match.js";
import { actionExtractors } from "./extraction/action-extractors.js";
import type { AgentOptions } from "./agent-options.js";

export const ACTION_MODES = ["free", "choices", "scored", "regex"] as const;
export type ActionMode = (typeof ACTION_MODES)[number];

/** How a reply is held to a pattern. */
interface ActionRegexSettings {
  readonly actionMode?: ActionMode;
  readonly actionRegex?: string | RegExp;
}

export interface TextAgentOptions<Observation, Action> extends AgentOptions<Observation, Action> {
  /**
   * "choices" holds replies to those that the environment lists, where it does; "scored" draws one of these by its score, by the
   * tokens' mean unless actionScoring says otherwise; "regex" holds them to actionRegex. Default "free".
   */
  readonly actionMode?: ActionMode;
  /**
   * A regular expression that replies match as a whole, for actionMode: "regex"; docs/constrained-decoding.md says what is supported.
   * What its group named `action` matches is the action's text, where it has one.
   */
  readonly actionRegex?: string | RegExp;
}

/** The agent for an environment that says itself how it reads as text. */
export class TextAgent<Observation = unknown, Action = unknown> extends Agent<Observation, Action> {
  private readonly actionMode: ActionMode;
  private readonly actionRegex: string | RegExp | undefined;
  /** Finds the action's text in a reply of the pattern; undefined for a pattern that does not say where it is. */
  private readonly regexExtractor: Extractor<string> | undefined;

  /**
   * Throws INVALID_ARGUMENT as Agent does, and for a pattern that is missing, not supported, can never end, or needs more than
   * maxNewTokens; TOKENIZER_UNSUPPORTED for a pattern with a tokenizer that puts text between tokens.
   */
  constructor(
    model: LanguageModel,
    private readonly text: TextInterface<Observation, Action>,
    { actionMode = "free", actionRegex, ...options }: TextAgentOptions<Observation, Action> = {},
  ) {
    const scoring = actionMode === "scored" ? { actionScoring: options.actionScoring ?? ("token" as const) } : {};
    super(model, undefined, { ...options, ...scoring });
    checkActionRegex({ actionMode, actionRegex });
    this.actionMode = actionMode;
    this.actionRegex = actionRegex;
    if (actionRegex === undefined) return;
    this.regexExtractor = createActionGroupExtractor(actionRegex);
    const { stop, ignoreEos } = options.generation ?? {};
    if (stop !== undefined || ignoreEos !== undefined)
      throw invalidArgument("A reply ends where its actionRegex lets it; it cannot go with stop or ignoreEos.");
    model.compilePattern(
      { regex: actionRegex },
      { start: "continuation", maxNewTokens: this.settings.completion.maxNewTokens },
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
    if (this.regexExtractor !== undefined) {
      const extraction = refine(this.regexExtractor, fromFunction(parse))(response);
      return fromWholeCompletion<Action>(extraction ?? extractionFailure("It does not match actionRegex."));
    }
    const value = parse(response);
    if (value !== undefined) return fromWholeCompletion<Action>({ kind: "parser", value });
    const choices = getChoices(this.text, observation, info)?.filter((choice) => /[\p{L}\p{N}]/u.test(choice)) ?? [];
    if (choices.length === 0)
      return fromWholeCompletion<Action>(extractionFailure("The environment finds no action in it."));
    return extractAction(response, actionExtractors({ choices, numbers: false }, parse));
  }

  override getChoices(observation: Observation, info: Info): readonly string[] | undefined {
    if (this.actionMode === "free" || this.actionMode === "regex") return undefined;
    const choices = getChoices(this.text, observation, info);
    if (choices !== undefined && choices.length > 0) return [...new Set(choices)];
    throw invalidArgument(
      'This environment does not list the replies that are possible, so replies cannot be held to choices; use actionMode: "free".',
    );
  }

  override getPattern(): string | RegExp | undefined {
    return this.actionRegex;
  }
}

/**
 * Throws INVALID_ARGUMENT for a pattern without actionMode: "regex", the other way round, and for one that is not supported or
 * allows no reply. It needs no model.
 */
export function checkActionRegex({ actionMode, actionRegex }: ActionRegexSettings): void {
  if (actionMode === "regex" && actionRegex === undefined)
    throw invalidArgument(
      'Replies are held to a pattern, but there is none: give actionRegex, such as "Action: (hit|stay)".',
    );
  if (actionRegex === undefined) return;
  if (actionMode !== "regex")
    throw invalidArgument('actionRegex holds replies with actionMode: "regex" only; set both.');
  compileToByteAutomaton({ regex: actionRegex });
}

/** What a pattern's group named `action` matches; undefined for a pattern without one. */
function createActionGroupExtractor(pattern: string | RegExp): Extractor<string> | undefined {
  const source = typeof pattern === "string" ? pattern : pattern.source;
  // An expression that may be empty matches anything, and tells its groups.
  const { groups = {} } = new RegExp(`${source}|`, "u").exec("")!;
  if (!Object.hasOwn(groups, "action")) return undefined;
  const flags = typeof pattern === "string" || !pattern.flags.includes("s") ? "u" : "su";
  return regexMatch(new RegExp(`^(?:${source})$`, flags));
}
