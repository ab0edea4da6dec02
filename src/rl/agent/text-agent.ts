import { invalidArgument, LlamaGymError } from "../../core/errors.js";
import type { Settings } from "../../core/settings.js";
import { printWarning } from "../../core/terminal-text.js";
import { getChoices, type TextInterface, type GameText, type Info } from "../../envs/index.js";
import { type JsonSchema, compileToByteAutomaton, type LanguageModel } from "../../generation/index.js";
import { extractionFailure, fromWholeCompletion, type Extraction } from "../rollout/extraction.js";
import { Agent } from "./agent.js";
import { fromFunction, extractAction, refine } from "./extraction/extract-action.js";
import type { Extractor } from "./extraction/extractor.js";
import { regexMatch } from "./extraction/regex-match.js";
import { actionExtractors } from "./extraction/action-extractors.js";
import type { AgentOptions } from "./agent-options.js";
import type { textAgentSettings } from "./agent-settings.js";

export type ActionMode = Settings<typeof textAgentSettings>["actionMode"];

/** How actions are generated. */
interface ActionFormat extends Partial<Pick<Settings<typeof textAgentSettings>, "actionMode">> {
  /**
   * Regular expression that completions match as a whole, with actionMode "regex";
   * docs/constrained-decoding.md lists the supported syntax. The match of its group named `action`
   * is the action's text, if present.
   */
  readonly actionRegex?: string | RegExp;
}

export interface TextAgentOptions<Observation, Action> extends AgentOptions<Observation, Action>, ActionFormat {}

/** Agent for environments with a text interface. */
export class TextAgent<Observation = unknown, Action = unknown> extends Agent<Observation, Action> {
  private readonly text: TextInterface<Observation, Action>;
  private readonly actionMode: ActionMode;
  private readonly actionRegex: string | RegExp | undefined;
  /** Extracts the action's text from a match; undefined without a group named `action`. */
  private readonly regexExtractor: Extractor<string> | undefined;

  /**
   * With actionMode "schema", optional tools whose schema cannot constrain a completion are left
   * out, with a warning.
   * @throws INVALID_ARGUMENT as Agent, and for a pattern that is missing, unsupported, or can match
   * nothing within maxNewTokens; TOKENIZER_UNSUPPORTED for a pattern with a tokenizer that inserts
   * text between tokens.
   */
  constructor(
    model: LanguageModel,
    text: TextInterface<Observation, Action>,
    { actionMode = "free", actionRegex, ...options }: TextAgentOptions<Observation, Action> = {},
  ) {
    const scoring = actionMode === "scored" ? { actionScoring: options.actionScoring ?? ("token" as const) } : {};
    super(model, undefined, { ...options, ...scoring, historyTurns: options.historyTurns ?? text.historyTurns });
    checkActionRegex({ actionMode, actionRegex });
    this.text = actionMode === "schema" ? withoutUnsupportedTools(text) : text;
    this.actionMode = actionMode;
    this.actionRegex = actionRegex;
    if (actionRegex === undefined) return;
    this.regexExtractor = createActionGroupExtractor(actionRegex);
    const { stop, ignoreEos } = options.generation ?? {};
    if (stop !== undefined || ignoreEos !== undefined)
      throw invalidArgument("actionRegex determines where a completion ends. Remove stop and ignoreEos.");
    model.compilePattern(
      { regex: actionRegex },
      { start: "continuation", maxNewTokens: this.settings.completion.maxNewTokens },
    );
  }

  override getSystemPrompt(seat?: number): string {
    const { systemPromptOf } = this.text as Partial<GameText<Observation, Action>>;
    return seat === undefined || systemPromptOf === undefined ? this.text.systemPrompt : systemPromptOf(seat);
  }

  override formatObservation(observation: Observation, info: Info): string {
    return this.text.formatObservation(observation, info);
  }

  /**
   * Returns the action that the environment's parser finds; otherwise the listed choice that the
   * completion mentions, in any form of `actionExtractors` except numbers. With a pattern that has
   * a group named `action`, only its match is parsed.
   */
  override extractAction(
    response: string,
    observation: Observation,
    info: Info,
  ): Action | Extraction<Action> | undefined {
    const parse = (text: string) => {
      const action: unknown = this.text.parseAction(text, observation, info);
      if (!(action instanceof Promise)) return action as Action | undefined;
      throw invalidArgument("The text interface's parseAction returned a Promise; it must return the action itself.");
    };
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
    if (this.actionMode !== "choices" && this.actionMode !== "scored") return undefined;
    const choices = getChoices(this.text, observation, info);
    if (choices !== undefined && choices.length > 0) return [...new Set(choices)];
    throw invalidArgument('This environment lists no choices; use actionMode "free".');
  }

  override getPattern(): string | RegExp | undefined {
    return this.actionRegex;
  }

  override getSchema(): JsonSchema | undefined {
    if (this.actionMode !== "schema") return undefined;
    if (this.text.jsonSchema !== undefined) return this.text.jsonSchema;
    throw invalidArgument('This environment has no JSON schema of its actions; use actionMode "free" or "choices".');
  }
}

/**
 * @throws INVALID_ARGUMENT for actionMode "regex" without actionRegex or vice versa, and for a
 * pattern that is unsupported or matches nothing. Needs no model.
 */
export function checkActionRegex({ actionMode, actionRegex }: ActionFormat): void {
  if (actionMode === "regex" && actionRegex === undefined)
    throw invalidArgument('actionMode "regex" requires actionRegex; set it, for example to "Action: (hit|stay)".');
  if (actionRegex === undefined) return;
  if (actionMode !== "regex") throw invalidArgument('actionRegex requires actionMode "regex"; set both.');
  compileToByteAutomaton({ regex: actionRegex });
}

/**
 * Returns a text interface without the optional tools whose schema cannot be compiled. @throws
 * INVALID_ARGUMENT if none can be.
 */
function withoutUnsupportedTools<Observation, Action>(
  text: TextInterface<Observation, Action>,
): TextInterface<Observation, Action> {
  const { optionalTools } = text;
  if (optionalTools === undefined) return text;
  const problems = new Map<string, string>();
  for (const [name, jsonSchema] of optionalTools.parameters) {
    try {
      compileToByteAutomaton({ jsonSchema });
    } catch (error) {
      if (!(error instanceof LlamaGymError)) throw error;
      problems.set(name, `The tool ${JSON.stringify(name)} is left out: ${error.message}`);
    }
  }
  if (problems.size === 0) return text;
  if (problems.size === optionalTools.parameters.size)
    throw invalidArgument(`The environment has no tool that can be called. ${[...problems.values()][0]}`);
  for (const problem of problems.values()) printWarning(problem);
  return optionalTools.without([...problems.keys()]);
}

/** Creates an extractor of a pattern's group named `action`; undefined without one. */
function createActionGroupExtractor(pattern: string | RegExp): Extractor<string> | undefined {
  const source = typeof pattern === "string" ? pattern : pattern.source;
  // An expression with an empty alternative matches anything, which reveals its groups.
  const { groups = {} } = new RegExp(`${source}|`, "u").exec("")!;
  if (!Object.hasOwn(groups, "action")) return undefined;
  const flags = typeof pattern === "string" || !pattern.flags.includes("s") ? "u" : "su";
  return regexMatch(new RegExp(`^(?:${source})$`, flags));
}
