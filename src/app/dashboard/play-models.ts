import { type LanguageModel, AutoModelForCausalLM } from "../../generation/index.js";
import { constants, setPriority } from "node:os";
import { join } from "node:path";
import { invalidArgument, LlamaGymError } from "../../core/errors.js";
import { selectSettings } from "../../core/settings.js";
import { isServiceModelFolder } from "../../tinker/index.js";
import { baseModelSettings } from "../../models/index.js";
import { envSettings, RunEnv } from "../runs/run-env.js";
import type { TextAgent } from "../../rl/agent/index.js";
import { EnvSupply } from "../runs/env-supply.js";
import { makeTextAgent, readTextEnv } from "../runs/make-text-agent.js";
import { findNamedFile, isModelPath } from "../runs/find-named-file.js";
import { agentRunSettings, resolveTrainConfig, type TrainOptions, type TrainConfig } from "../runs/run-settings.js";
import type { PlayModel } from "./api.js";
import { listCheckpoints } from "./list-checkpoints.js";
import type { RunsFolder } from "./run-files.js";

/** Settings of a run that its agent also has here. */
const takenSettings = { ...baseModelSettings, ...envSettings, ...agentRunSettings };

/** Agents that stay open while nothing uses them. */
const MAX_IDLE = 2;

/** The agent of a checkpoint, and the environment of its run. */
export interface PlayAgent {
  readonly agent: TextAgent;
  readonly env: string;
  readonly checkpoint: string;
  readonly envs: Pick<EnvSupply, "make" | "close">;
}

interface OpenAgent {
  readonly opened: Promise<PlayAgent>;
  users: number;
}

/**
 * Agents of checkpoints, opened when they are first needed, on one CPU thread and at low priority,
 * so that concurrent training keeps its speed. A run folder may be of others: its config.json names
 * environments of the package without paths, and models of the hub, unless `allowsFiles`; code is
 * never loaded.
 */
export class PlayModels {
  private readonly agents = new Map<string, OpenAgent>();

  constructor(
    private readonly runs: RunsFolder,
    private readonly allowsFiles: boolean,
  ) {}

  /**
   * Opens the agent of a checkpoint, or returns the open one; `release` it once. @throws as opening
   * a run's model.
   */
  async acquire({
    run,
    checkpoint = "latest",
  }: PlayModel): Promise<{ readonly agent: PlayAgent; readonly release: () => void }> {
    const name = await this.resolveCheckpoint(run, checkpoint);
    const key = JSON.stringify([run, name]);
    const entry = this.agents.get(key) ?? { opened: this.openAgent(run, name), users: 0 };
    this.agents.set(key, entry);
    entry.users++;
    try {
      const agent = await entry.opened;
      return { agent, release: () => this.release(entry) };
    } catch (error) {
      this.agents.delete(key);
      throw error;
    }
  }

  async close(): Promise<void> {
    const entries = [...this.agents.values()];
    this.agents.clear();
    for (const { opened } of entries) await closeAgent(opened);
  }

  private release(entry: OpenAgent): void {
    entry.users--;
    const idle = [...this.agents].filter(([, { users }]) => users === 0);
    for (const [key, { opened }] of idle.slice(0, -MAX_IDLE)) {
      this.agents.delete(key);
      void closeAgent(opened);
    }
  }

  private async resolveCheckpoint(run: string, checkpoint: string): Promise<string> {
    const names = (await listCheckpoints(this.runs, run)).map(({ name }) => name);
    const name =
      checkpoint === "latest" ? (names.findLast((candidate) => candidate !== "adapter") ?? names.at(-1)) : checkpoint;
    if (name !== undefined && names.includes(name)) return name;
    throw new LlamaGymError(
      "FILE_NOT_FOUND",
      `The run ${JSON.stringify(run)} has no checkpoint ${JSON.stringify(checkpoint)}.`,
    );
  }

  private async openAgent(run: string, checkpoint: string): Promise<PlayAgent> {
    const saved = ((await this.runs.readJson(run, "config.json")) ?? {}) as Partial<TrainOptions>;
    this.checkFiles(saved);
    const { env = "", envOptions } = saved;
    const config = resolveTrainConfig({ ...selectSettings(takenSettings, saved), env, envOptions });
    const subfolder = checkpoint === "adapter" ? checkpoint : join("checkpoints", checkpoint);
    const folder = await this.checkedFolder(run, subfolder);
    const isFull = saved.tuning === "full";
    if (isFull && (await this.runs.list(run, subfolder)).includes("adapter_config.json"))
      throw invalidArgument("The run's tuning is full, but its checkpoint is an adapter, which names a base model.");
    const envs = new EnvSupply(new RunEnv(config));
    try {
      const textEnv = await envs.read(readTextEnv);
      const model = await this.openModel(config, folder, isFull);
      return { agent: makeTextAgent(model, textEnv, config), env, checkpoint, envs };
    } catch (error) {
      await envs.close();
      throw error;
    }
  }

  private async openModel(config: TrainConfig, folder: string, isFull: boolean): Promise<LanguageModel> {
    if (await isServiceModelFolder(folder))
      throw invalidArgument(
        "The run's model is on a Tinker service, which the dashboard does not call. Use llamagym play.",
      );
    // The threads that the model starts inherit the priority.
    setPriority(constants.priority.PRIORITY_LOW);
    return AutoModelForCausalLM.fromPretrained(isFull ? folder : config.model, {
      adapter: isFull ? undefined : folder,
      device: "cpu",
      threads: 1,
      splitSpecialTokens: config.splitSpecialTokens,
    });
  }

  /** @throws INVALID_ARGUMENT for a run that names code, or files that were not allowed. */
  private checkFiles({ env = "", envOptions, model = "" }: Partial<TrainOptions>): void {
    const named = findNamedFile(env, envOptions);
    if (named?.setting === "env")
      throw invalidArgument(
        `The dashboard plays environments of the package, not ${JSON.stringify(env)}, which may run code. Use llamagym play.`,
      );
    if (this.allowsFiles) return;
    const advice = "may be a file. If the run is yours, start the dashboard with --allow-files to play it.";
    if (named !== undefined)
      throw invalidArgument(`The run's environment option ${JSON.stringify(named.name)} ${advice}`);
    if (isModelPath(model)) throw invalidArgument(`The run's model ${JSON.stringify(model)} ${advice}`);
  }

  /** Returns a subfolder of a run, none of whose files is a link. */
  private async checkedFolder(run: string, subfolder: string): Promise<string> {
    for (const name of await this.runs.list(run, subfolder))
      await (await this.runs.openFile(run, join(subfolder, name))).close();
    return join(await this.runs.folder(run), subfolder);
  }
}

async function closeAgent(opened: Promise<PlayAgent>): Promise<void> {
  await opened
    .then(async ({ agent, envs }) => {
      await envs.close();
      await agent.model.close();
    })
    .catch(() => {});
}
