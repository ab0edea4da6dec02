import { errorMessage, invalidArgument, invalidEnv, LlamaGymError } from "../../../core/errors.js";
import { asJsonObject, type JsonObject, type JsonValue } from "../../../core/json.js";
import { unknownSetting } from "../../../core/settings.js";
import { Env, type ResetOptions, type ResetResult, type StepResult } from "../../env.js";
import { formatMember } from "../../spaces/format-member.js";
import type { TextInterface } from "../../text-interface.js";
import { checkTimeoutMs } from "../channel.js";
import { parseServerUrl } from "../http/http-client.js";
import { JsonSpace } from "../json-space.js";
import { MAX_TEXT_LENGTH } from "../limits.js";
import { parseLastObject } from "../open-env/open-env-text.js";
import { type McpResult, type McpTarget, type McpTool, splitCommand } from "./mcp-connection.js";
import { MAX_FAILED_EPISODES } from "./mcp-limits.js";
import { type EpisodeMessage, type McpEpisode, type McpReward, resolveReward } from "./mcp-reward.js";
import { acquireServer, type McpServerLease } from "./mcp-server-lease.js";
import { type AgentTask, checkTasks, readTasks } from "./read-tasks.js";
import { type McpCall, ToolCallSpace } from "./tool-call-space.js";

const DEFAULT_MAX_EPISODE_STEPS = 16;
const DEFAULT_MAX_RESULT_LENGTH = 4000;
/** Characters of an answer, where its schema is not set. */
const MAX_ANSWER_LENGTH = 200;

export interface McpEnvOptions {
  /**
   * Scores a step: a function, `FILE#export` of a module, "result" for the `reward` and `done` in
   * the structured content of the results, or "none" for 0. Default: 1 if the answer equals the
   * answer of the task, for tasks with an `answer`.
   */
  readonly reward?: McpReward | string;
  /**
   * Prompts, objects with a `prompt`, or the path of a JSONL file of these. An episode draws one.
   */
  readonly tasks?: readonly (string | AgentTask)[] | string;
  /** Names of the tools that the model may call. Default: all. */
  readonly tools?: readonly string[];
  /**
   * Tool whose call ends the episode. If the server has none of this name, it is added with an
   * `answer`. false for none. Default "finish"; false with the reward "result".
   */
  readonly finish?: string | false;
  /** JSON schema of `answer`. Default: a string. */
  readonly answerSchema?: JsonObject;
  /**
   * Tool called at every reset with the task's `setup` and, if it takes one, a `seed`. Its text
   * follows the task's prompt. The model cannot call it.
   */
  readonly resetTool?: string;
  /**
   * Uses one server for all environments of this program, for servers without state. Default false.
   */
  readonly shared?: boolean;
  readonly systemPrompt?: string;
  /** Truncates an episode after this many calls. Default 16. */
  readonly maxEpisodeSteps?: number;
  /** Characters of a result that the model reads. Default 4,000. */
  readonly maxResultLength?: number;
  /** Limit of a call in milliseconds. Default: one minute. */
  readonly timeout?: number;
  /** Limit of the server's start in milliseconds. Default: one minute. */
  readonly startTimeout?: number;
  /** Environment variables of the server's process, which inherits PATH, HOME and the like only. */
  readonly environment?: Readonly<Record<string, string>>;
  /** Environment variable whose value is sent to a URL as bearer token. */
  readonly tokenVariable?: string;
}

const OPTION_NAMES: readonly string[] = [
  ..."reward tasks tools finish answerSchema resetTool shared systemPrompt maxEpisodeSteps maxResultLength".split(" "),
  ..."timeout startTimeout environment tokenVariable".split(" "),
];

interface EpisodeState {
  readonly task: AgentTask;
  readonly steps: { readonly call: McpCall; readonly result: McpResult }[];
  readonly messages: EpisodeMessage[];
}

/**
 * The tools of an MCP server as an environment. An action is a call `{ name, arguments }`, an
 * observation the text of its result. If the server fails, the episode is truncated and the next
 * one begins with a new connection.
 */
export class McpEnv extends Env<string, McpCall> {
  override readonly observationSpace = new JsonSpace({ type: "string" }) as unknown as Env<string>["observationSpace"];
  override readonly actionSpace: Env<string, McpCall>["actionSpace"];
  override readonly text: TextInterface<string, McpCall>;
  private readonly maxEpisodeSteps: number;
  private readonly finish: string | false;
  private readonly toolsJson: string;
  private episode: EpisodeState | undefined;
  private failedEpisodes = 0;

  private constructor(
    private readonly name: string,
    private readonly server: McpServerLease,
    private readonly tasks: readonly AgentTask[],
    private readonly score: Awaited<ReturnType<typeof resolveReward>>,
    private readonly options: McpEnvOptions,
    offered: readonly McpTool[],
  ) {
    super();
    const { maxEpisodeSteps = DEFAULT_MAX_EPISODE_STEPS, reward } = options;
    const { finish = reward === "result" ? false : "finish" } = options;
    if (!Number.isInteger(maxEpisodeSteps) || maxEpisodeSteps < 1)
      throw invalidArgument(`\`maxEpisodeSteps\` must be an integer >= 1, got ${maxEpisodeSteps}.`);
    this.maxEpisodeSteps = maxEpisodeSteps;
    this.finish = finish;
    this.toolsJson = JSON.stringify(server.connection.tools);
    const selected = selectTools(name, offered, options);
    const addFinishTool = (tools: readonly McpTool[]) => addFinish(tools, finish, options.answerSchema);
    const space = new ToolCallSpace(addFinishTool(selected));
    this.actionSpace = space as unknown as Env<string, McpCall>["actionSpace"];
    const createText = (tools: readonly McpTool[]) => createToolText(addFinishTool(tools), options.systemPrompt);
    // Tools that the user named are not optional.
    const optionalTools = options.tools === undefined ? makeOptional(selected, createText) : undefined;
    this.text = { ...createText(selected), optionalTools };
  }

  /**
   * Connects to the server of a command ("node server.js") or URL and reads its tools.
   * @throws ENV_FAILED when it cannot be started or reached, ENV_INVALID for its tools,
   * INVALID_ARGUMENT for options, INVALID_STATE without the MCP SDK, FILE_NOT_FOUND and
   * FILE_CORRUPT for tasks.
   */
  static async open(server: string, options: McpEnvOptions = {}): Promise<McpEnv> {
    const unknown = Object.keys(options).find((name) => !OPTION_NAMES.includes(name));
    if (unknown !== undefined) throw unknownSetting("An MCP environment", OPTION_NAMES, unknown);
    const { tasks = [{ prompt: options.resetTool === undefined ? "Begin." : "" }], shared = false } = options;
    const list = typeof tasks === "string" ? await readTasks(tasks) : checkTasks(tasks);
    const score = await resolveReward(options.reward, list);
    const name = `The MCP server ${server}`;
    const lease = await acquireServer(
      {
        name,
        target: parseTarget(server, options),
        timeout: checkTimeoutMs("timeout", options.timeout),
        startTimeout: checkTimeoutMs("startTimeout", options.startTimeout),
      },
      shared,
    );
    try {
      return new McpEnv(name, lease, list, score, options, lease.connection.tools);
    } catch (error) {
      await lease.release();
      throw error;
    }
  }

  override async reset({ seed }: ResetOptions = {}): Promise<ResetResult<string>> {
    this.reseed(seed);
    const task = this.random.choice(this.tasks);
    const connection = await this.server.connect();
    await connection.refreshTools();
    if (JSON.stringify(connection.tools) !== this.toolsJson)
      throw invalidEnv(
        `${this.name} has changed its tools during the run. Restart with a server whose tools stay the same.`,
      );
    const start = await this.callResetTool(task);
    const observation = [task.prompt, start].filter((part) => part !== "").join("\n");
    this.episode = { task, steps: [], messages: [{ role: "user", content: observation }] };
    return { observation, info: { task } };
  }

  override async step(action: McpCall): Promise<StepResult<string>> {
    this.checkAction(action);
    const { episode } = this;
    if (episode === undefined) throw this.notResetError();
    let result: McpResult;
    try {
      result = await this.call(action);
    } catch (error) {
      return this.endFailedEpisode(error);
    }
    this.failedEpisodes = 0;
    const observation = truncate(result.isError ? `Error: ${result.text}` : result.text, this.options.maxResultLength);
    episode.steps.push({ call: action, result });
    episode.messages.push(
      { role: "assistant", content: this.text.formatAction(action) },
      { role: "user", content: observation },
    );
    const isFinished = action.name === this.finish;
    const isLimit = episode.steps.length >= this.maxEpisodeSteps;
    const scored: McpEpisode = {
      ...episode,
      answer: isFinished ? (action.arguments.answer ?? action.arguments) : undefined,
      isOver: isFinished || isLimit,
    };
    const { reward, terminated } = await this.score(scored);
    const hasEnded = isFinished || terminated;
    if (hasEnded || isLimit) this.episode = undefined;
    return {
      observation,
      reward,
      terminated: hasEnded,
      truncated: isLimit && !hasEnded,
      info: { isError: result.isError },
    };
  }

  override close(): Promise<void> {
    return this.server.release();
  }

  private async call(action: McpCall): Promise<McpResult> {
    const { connection } = this.server;
    const isAnswer = action.name === this.finish && !connection.tools.some(({ name }) => name === action.name);
    if (isAnswer) return { text: "Finished.", isError: false, structuredContent: undefined };
    return connection.call(action.name, action.arguments);
  }

  /** Returns the text of the reset tool. */
  private async callResetTool(task: AgentTask): Promise<string> {
    const { resetTool, maxResultLength } = this.options;
    if (resetTool === undefined) return "";
    const { connection } = this.server;
    const { parameters } = connection.tools.find(({ name }) => name === resetTool)!;
    const takesSeed = Object.hasOwn(asJsonObject(parameters.properties) ?? {}, "seed");
    const seed: JsonObject = takesSeed ? { seed: this.random.integers(0, 2 ** 31) } : {};
    const { isError, text } = await connection.call(resetTool, { ...seed, ...asJsonObject(task.setup) });
    if (isError) throw new LlamaGymError("ENV_FAILED", `${this.name} refused to reset: ${text}`);
    return truncate(text, maxResultLength);
  }

  /** @throws ENV_FAILED after several episodes that ended this way. */
  private endFailedEpisode(error: unknown): StepResult<string> {
    this.episode = undefined;
    if (++this.failedEpisodes >= MAX_FAILED_EPISODES) throw error;
    const message = errorMessage(error);
    return { observation: "", reward: 0, terminated: false, truncated: true, info: { error: message } };
  }
}

function parseTarget(server: string, { environment = {}, tokenVariable }: McpEnvOptions): McpTarget {
  if (!/^https?:/.test(server)) {
    const [command, ...args] = splitCommand(server);
    return { command, args, environment };
  }
  const token = tokenVariable === undefined ? undefined : process.env[tokenVariable];
  if (tokenVariable !== undefined && token === undefined)
    throw invalidArgument(`\`tokenVariable\` is ${tokenVariable}, but this environment variable is not set.`);
  const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };
  return { url: parseServerUrl(server, ["http", "https"]), headers };
}

function selectTools(
  server: string,
  tools: readonly McpTool[],
  { tools: names, resetTool }: McpEnvOptions,
): readonly McpTool[] {
  const missing = [...(names ?? []), ...(resetTool === undefined ? [] : [resetTool])].find(
    (name) => !tools.some((tool) => tool.name === name),
  );
  if (missing !== undefined)
    throw invalidArgument(`${server} has no tool ${missing}. It has: ${tools.map(({ name }) => name).join(", ")}.`);
  return tools.filter(({ name }) => name !== resetTool && (names === undefined || names.includes(name)));
}

function addFinish(tools: readonly McpTool[], finish: string | false, answerSchema?: JsonObject): readonly McpTool[] {
  if (finish === false || tools.some(({ name }) => name === finish)) return tools;
  const answer = answerSchema ?? { type: "string", maxLength: MAX_ANSWER_LENGTH };
  const parameters = { type: "object", properties: { answer }, required: ["answer"] };
  return [...tools, { name: finish, description: "Ends the task with your answer.", parameters }];
}

function makeOptional(
  tools: readonly McpTool[],
  createText: (tools: readonly McpTool[]) => TextInterface<string, McpCall>,
): TextInterface<string, McpCall>["optionalTools"] {
  return {
    parameters: new Map(tools.map(({ name, parameters }) => [name, parameters])),
    without: (names) => createText(tools.filter(({ name }) => !names.includes(name))),
  };
}

function createToolText(tools: readonly McpTool[], systemPrompt: string | undefined): TextInterface<string, McpCall> {
  const space = new ToolCallSpace(tools);
  const list = tools.map((tool) => JSON.stringify(tool)).join("\n");
  return {
    systemPrompt:
      systemPrompt ??
      `You solve tasks by calling tools. Reply with one call as JSON: {"name": NAME, "arguments": ARGUMENTS}. The tools are:\n${list}`,
    formatObservation: (observation) => observation,
    parseAction: (completion) => {
      const call: JsonValue | undefined = parseLastObject(completion);
      return space.contains(call) ? (call as unknown as McpCall) : undefined;
    },
    formatAction: (call) => formatMember(call as unknown as JsonValue, space.schema),
    jsonSchema: space.schema,
  };
}

function truncate(text: string, limit = DEFAULT_MAX_RESULT_LENGTH): string {
  const length = Math.min(limit, MAX_TEXT_LENGTH);
  return text.length <= length ? text : `${text.slice(0, length)}\n[${text.length - length} more characters]`;
}
